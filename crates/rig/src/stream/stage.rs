//! Sides that publish the same batch in turn, round after round.

use bytes::Bytes;
use trifid_stream_client::wire::spec::Durability;

use super::batch::Shape;
use super::door::{Door, Via};
use super::drive::{Cast, Drive, Driven, drive};
use super::floor::Running;
use super::nats;
use super::publisher::Publisher;
use super::rounds::Round;
use crate::bench::Bench;
use crate::error::Error;
use crate::generator::Pace;
use crate::server::Server;

/// One who is published to.
#[derive(Clone, Copy)]
pub(super) enum Side<'a> {
    /// The stream door.
    Door(&'a Door, Via),
    /// The stream door, with a subscriber that is given everything: a batch is done when it is delivered.
    Delivering(&'a Door, Via),
    /// A floor.
    Floor(&'a Running),
    /// NATS with its stream kept so.
    Nats(&'a Server, nats::Storage),
}

/// A side with its name in reports.
pub(super) type Named<'a> = (&'static str, Side<'a>);

/// What is published.
#[derive(Clone, Copy)]
pub(super) struct Publish<'a> {
    /// What the cell is called.
    pub(super) name: &'a str,
    /// The stream of the door, and what its acknowledgements promise.
    pub(super) stream: &'a str,
    pub(super) durability: Durability,
    pub(super) shape: Shape,
    pub(super) clients: usize,
}

/// Drives each side in turn, as many rounds as the options say; for each side its rounds.
pub(super) async fn rounds(
    bench: &mut Bench<'_>,
    sides: &[Named<'_>],
    load: Publish<'_>,
) -> Result<Vec<Vec<Round>>, Error> {
    let batch = load.shape.encoded();
    let mut all: Vec<Vec<Round>> = sides.iter().map(|_| Vec::new()).collect();
    for round in 1..=bench.options.rounds {
        let (name, clients, of) = (load.name, load.clients, bench.options.rounds);
        (bench.progress)(&format!("{name}, {clients} publishers: round {round} of {of}"));
        for ((_, side), rounds) in sides.iter().zip(&mut all) {
            rounds.push(once(bench, *side, load, &batch, Pace::Closed).await?);
        }
    }
    Ok(all)
}

/// Drives one side through one window.
pub(super) async fn once(
    bench: &Bench<'_>,
    side: Side<'_>,
    load: Publish<'_>,
    batch: &Bytes,
    pace: Pace,
) -> Result<Round, Error> {
    let before = side.counted(load.stream)?;
    let cast = side.cast(bench, load, batch, pace).await?;
    let driven = drive(&side.drive(bench, load.shape, pace), cast).await?;
    let flushes = match (before, side.counted(load.stream)?) {
        // A wave of the committer ends with a flush only where acknowledgements wait for one.
        (Some(before), Some(after)) if load.durability == Durability::OnCommit => {
            Some((after.0 - before.0) / (after.1 - before.1))
        }
        _ => None,
    };
    side.forget().await?;
    Ok(published(driven, load.shape, flushes))
}

/// A round that counts what was published.
pub(super) fn published(driven: Driven, shape: Shape, flushes: Option<f64>) -> Round {
    let Driven { window, delivery, .. } = driven;
    let messages = window.latency.count() * shape.records as u64;
    Round {
        messages,
        bytes: window.body_bytes,
        delivery,
        flushes: flushes.filter(|each| *each > 0.0),
        window,
    }
}

impl Side<'_> {
    fn drive(self, bench: &Bench<'_>, shape: Shape, pace: Pace) -> Drive {
        let server = match self {
            Side::Door(door, _) | Side::Delivering(door, _) => &door.server,
            Side::Floor(running) => &running.server,
            Side::Nats(server, _) => server,
        };
        driving(bench, server, shape, pace)
    }

    async fn cast(
        self,
        bench: &Bench<'_>,
        load: Publish<'_>,
        batch: &Bytes,
        pace: Pace,
    ) -> Result<Cast, Error> {
        let until_delivered = matches!(self, Side::Delivering(..)) && pace == Pace::Closed;
        let mut cast = Cast { until_delivered, ..Cast::default() };
        match self {
            Side::Delivering(door, via) => {
                let expected = (!bench.options.judging()).then(|| batch.clone());
                cast.readers.push(door.subscriber(via, load.stream, expected).await?);
                cast.publishers = door.publishers(via, load.clients, load.stream, load.shape, batch).await?;
            }
            Side::Door(door, via) => {
                cast.publishers = door.publishers(via, load.clients, load.stream, load.shape, batch).await?;
            }
            Side::Floor(running) => {
                for number in 0..load.clients {
                    let number = u32::try_from(number).unwrap_or(u32::MAX);
                    cast.publishers.push(running.floor.connect(number, batch).await?);
                }
            }
            Side::Nats(server, storage) => cast.publishers = by_nats(server, storage, load).await?,
        }
        Ok(cast)
    }

    /// Waves and records that the server counts, where it does.
    fn counted(self, stream: &str) -> Result<Option<(f64, f64)>, Error> {
        match self {
            Side::Door(door, _) | Side::Delivering(door, _) => door.counted(stream).map(Some),
            Side::Floor(_) | Side::Nats(..) => Ok(None),
        }
    }

    /// What NATS kept goes; the door's streams have their retention.
    async fn forget(self) -> Result<(), Error> {
        let Side::Nats(server, _) = self else { return Ok(()) };
        let mut connection = nats::Publisher::connect(server.address(), usize::MAX).await.map_err(of_nats)?;
        connection.delete_stream().await.map_err(of_nats)
    }
}

/// Drives this server as the options say.
pub(super) fn driving(bench: &Bench<'_>, server: &Server, shape: Shape, pace: Pace) -> Drive {
    Drive {
        name: server.name(),
        pid: server.pid(),
        batch_bytes: shape.payload_bytes() as u64,
        pace,
        warm_up: bench.options.warm_up,
        window: bench.options.window,
    }
}

async fn by_nats(
    server: &Server,
    storage: nats::Storage,
    load: Publish<'_>,
) -> Result<Vec<Publisher>, Error> {
    let mut first = nats::Publisher::connect(server.address(), usize::MAX).await.map_err(of_nats)?;
    first.create_stream(storage).await.map_err(of_nats)?;
    let payload = Bytes::from(vec![7; load.shape.bytes]);
    let mut publishers = Vec::with_capacity(load.clients);
    for number in 0..load.clients {
        let connection = nats::Publisher::connect(server.address(), number).await.map_err(of_nats)?;
        publishers.push(Publisher::Nats { connection, payload: payload.clone(), count: load.shape.records });
    }
    Ok(publishers)
}

fn of_nats(source: std::io::Error) -> Error {
    Error::Connection { name: nats::NAME, source }
}
