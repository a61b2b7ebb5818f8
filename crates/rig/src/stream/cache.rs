//! The cell `cache`: putting and getting a small value, one request in flight on each connection.

use bytes::Bytes;
use trifid_stream_client::wire::frame::{Expect, Reply, Request, Ttl, request};

use super::batch::Shape;
use super::door::{self, Door};
use super::drive::{Cast, drive};
use super::native::Caller;
use super::publisher::Publisher;
use super::rounds::{self, Round};
use super::stage::{driving, published};
use crate::args::{Mode, Transport};
use crate::bench::Bench;
use crate::cell::Load;
use crate::error::Error;
use crate::generator::Pace;
use crate::report::Findings;

const CACHE: &str = "bench.cache";
/// A value of 256 bytes counts as one message.
const SHAPE: Shape = Shape { records: 1, bytes: 256 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Put,
    Get,
}

/// A verb, over which transport, and what that is called.
const SIDES: [(&str, Verb, Transport); 4] = [
    ("put, tls", Verb::Put, Transport::Tls),
    ("get, tls", Verb::Get, Transport::Tls),
    ("put, quic", Verb::Put, Transport::Quic),
    ("get, quic", Verb::Get, Transport::Quic),
];

fn clients(mode: Mode) -> &'static [usize] {
    if mode == Mode::Smoke { &[1, 3] } else { &[1, 32] }
}

/// Measures and adds to the findings.
pub(super) async fn measure(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Error> {
    let door = Door::in_folder(bench, super::CACHE)?;
    door.create_cache(CACHE).await?;
    for &clients in clients(bench.options.mode) {
        fill(&door, clients).await?;
        let mut of_sides: Vec<Vec<Round>> = SIDES.iter().map(|_| Vec::new()).collect();
        for round in 1..=bench.options.rounds {
            (bench.progress)(&format!("cache, {clients} clients: round {round} of {}", bench.options.rounds));
            for ((_, verb, transport), rounds) in SIDES.iter().zip(&mut of_sides) {
                rounds.push(once(bench, &door, *verb, *transport, clients).await?);
            }
        }
        for ((side, _, _), rounds) in SIDES.iter().zip(&of_sides) {
            let load = Load { name: "cache, 256 B (a message is an operation)", pace: "closed", clients };
            findings.cells.push(rounds::cell(load, side, rounds));
        }
    }
    door.server.stop()
}

async fn once(
    bench: &Bench<'_>,
    door: &Door,
    verb: Verb,
    transport: Transport,
    clients: usize,
) -> Result<Round, Error> {
    let mut cast = Cast::default();
    for number in 0..clients {
        cast.publishers.push(Publisher::Native(caller(door, verb, transport, number).await?));
    }
    let driven = drive(&driving(bench, &door.server, SHAPE, Pace::Closed), cast).await?;
    Ok(published(driven, SHAPE, None))
}

/// Each connection has a key of its own.
async fn caller(door: &Door, verb: Verb, transport: Transport, number: usize) -> Result<Caller, Error> {
    let line = door.native.connect(transport).await.map_err(door::failed)?;
    line.cache(CACHE, |handle| question(verb, handle, number)).await.map_err(door::failed)
}

fn question(verb: Verb, handle: u32, number: usize) -> Request {
    let key = Bytes::from(format!("key-{number}"));
    match verb {
        Verb::Put => {
            let value = value(number);
            request::CachePut { handle, key, value, ttl: Ttl::Forever, expect: Expect::Any }.into()
        }
        Verb::Get => request::CacheGet { handle, key }.into(),
    }
}

fn value(number: usize) -> Bytes {
    Bytes::from(vec![(number % 251) as u8; SHAPE.bytes])
}

/// Puts what is got later, and looks at it.
async fn fill(door: &Door, clients: usize) -> Result<(), Error> {
    for number in 0..clients {
        caller(door, Verb::Put, Transport::Tls, number).await?.answer().await.map_err(door::failed)?;
        let answer = caller(door, Verb::Get, Transport::Tls, number).await?.answer().await;
        match answer.map_err(door::failed)? {
            Reply::CacheValue(found) if found.entry.as_ref().is_some_and(|e| e.value == value(number)) => {}
            other => {
                let what = format!("put and got another value: {other:?}");
                return Err(Error::Wrong { name: door::NAME, what: format!("{what:.300}") });
            }
        }
    }
    Ok(())
}
