//! The load of streams: publishers in a closed loop, on the generator's thread.
//!
//! Each publisher sends one batch, waits until it is acknowledged, and sends the next; so the number of publishers is
//! the number of batches in flight. All of them are tasks of one thread, whose CPU is the generator's.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::{JoinSet, LocalSet};

use super::publisher::Publisher;
use crate::error::Error;
use crate::figures::Latency;
use crate::generator::Window;
use crate::limits;
use crate::procfs::{self, Cpu};

/// What is driven, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    /// The server's name in messages.
    pub(super) name: &'static str,
    /// The process whose CPU is sampled.
    pub(super) pid: u32,
    /// Bytes of messages in one batch, as the publisher's user counts them.
    pub(super) batch_bytes: u64,
    /// Driven before anything is counted.
    pub(super) warm_up: Duration,
    /// Counted.
    pub(super) window: Duration,
}

/// What publishers count together.
struct Counted {
    latency: Latency,
    ending: bool,
    failed: Option<io::Error>,
}

/// Drives the publishers through one window and hands them back.
pub(super) async fn drive(
    drive: &Drive,
    publishers: Vec<Publisher>,
) -> Result<(Window, Vec<Publisher>), Error> {
    let clients = publishers.len();
    let counted =
        Rc::new(RefCell::new(Counted { latency: Latency::new(), ending: false, failed: None }));
    let local = LocalSet::new();
    let mut tasks = JoinSet::new();
    for publisher in publishers {
        tasks.spawn_local_on(publishing(publisher, Rc::clone(&counted)), &local);
    }
    let measured = local
        .run_until(async {
            tokio::time::sleep(drive.warm_up).await;
            counted.borrow_mut().latency = Latency::new();
            let before = Sample::take(drive)?;
            tokio::time::sleep(drive.window).await;
            let window = Sample::take(drive)?.since(&before, &counted.borrow().latency, drive, clients);
            counted.borrow_mut().ending = true;
            let finish = async { while_some(&mut tasks).await };
            match tokio::time::timeout(limits::ANSWER_WAIT, finish).await {
                Ok(publishers) => Ok((window, publishers)),
                Err(_) => {
                    Err(Error::Silent { name: drive.name, seconds: limits::ANSWER_WAIT.as_secs() })
                }
            }
        })
        .await?;
    match counted.borrow_mut().failed.take() {
        Some(source) => Err(Error::Connection { name: drive.name, source }),
        None => Ok(measured),
    }
}

async fn while_some(tasks: &mut JoinSet<Publisher>) -> Vec<Publisher> {
    let mut publishers = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        publishers.extend(ended.ok());
    }
    publishers
}

async fn publishing(mut publisher: Publisher, counted: Rc<RefCell<Counted>>) -> Publisher {
    while !counted.borrow().ending {
        let sent = Instant::now();
        let outcome = publisher.publish().await;
        let mut counted = counted.borrow_mut();
        match outcome {
            Ok(()) => counted.latency.record(sent.elapsed()),
            Err(error) => {
                counted.failed.get_or_insert(error);
                counted.ending = true;
            }
        }
    }
    publisher
}

/// The counters at one moment.
struct Sample {
    at: Instant,
    own: Duration,
    server: Cpu,
}

impl Sample {
    fn take(drive: &Drive) -> Result<Self, Error> {
        let server = Cpu::of(drive.pid).map_err(Error::system("reading the server's CPU"))?;
        Ok(Sample { at: Instant::now(), own: procfs::own_thread_cpu(), server })
    }

    fn since(&self, before: &Sample, latency: &Latency, drive: &Drive, clients: usize) -> Window {
        Window {
            wall: self.at - before.at,
            latency: latency.clone(),
            body_bytes: latency.count() * drive.batch_bytes,
            server_cpu: self.server.since(&before.server, procfs::ticks_per_second()),
            generator_cpu: self.own.saturating_sub(before.own),
            clients,
            ..Window::nothing()
        }
    }
}
