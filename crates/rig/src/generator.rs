//! The generator: one thread, raw non-blocking sockets, one epoll.
//!
//! Each connection has at most one request in flight. **Closed** load sends the next request the moment an
//! answer is complete, so it finds out how much a server can do; **paced** load sends at a fixed rate, so
//! two servers can be compared under the same work. Per request it costs one `read`, one `write`, one clock
//! reading, a copy of the request and a share of one `epoll_wait`: less than the least server, which must
//! do the same and speak HTTP besides.
//!
//! Every answer is checked (status, length, and the body where it is known). The first wrong one ends the
//! measurement: a figure of wrong answers is worth nothing.
//!
//! A paced request is due with its burst and its latency counts from there, also when no connection
//! was free: a slow server cannot hide its queue by slowing the generator down.

mod arrivals;

use crate::error::Error;
use crate::figures::Latency;
use crate::limits;
use crate::procfs::{self, Cpu};
use crate::request::Requests;
use crate::scanner::{Answer, Scanner};
use arrivals::Arrivals;
use mio::event::Event;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// As soon as the previous answer of the same connection is complete.
    Closed,
    /// At this many a second, whatever the server does.
    Paced(f64),
}

/// What to drive, how, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load<'a> {
    /// The server's name in messages.
    pub(crate) name: &'static str,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Processes whose CPU is sampled.
    pub(crate) pids: &'a [u32],
    /// Connections.
    pub(crate) clients: usize,
    /// How requests arrive.
    pub(crate) pace: Pace,
    /// Driven before anything is counted.
    pub(crate) warm_up: Duration,
    /// Counted.
    pub(crate) window: Duration,
    /// Keep each body and compare it with the expected one.
    pub(crate) compare_bodies: bool,
}

/// What one window showed.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// How long it really was.
    pub(crate) wall: Duration,
    /// Latencies of the answers completed within it.
    pub(crate) latency: Latency,
    /// Of the same answers, when the first byte of the body was there.
    pub(crate) first_byte: Latency,
    /// Latencies of answers that said to come again later, where that was admitted; they are in no other figure.
    pub(crate) refused: Latency,
    /// Bytes of the bodies of the answers completed within it.
    pub(crate) body_bytes: u64,
    /// CPU of the server.
    pub(crate) server_cpu: Duration,
    /// CPU of the generator.
    pub(crate) generator_cpu: Duration,
    /// The rate at which requests were due, if paced.
    pub(crate) offered: Option<f64>,
    /// Connections, and so requests of a burst.
    pub(crate) clients: usize,
}

impl Window {
    /// A window in which nothing happened.
    pub(crate) fn nothing() -> Window {
        Window {
            wall: Duration::ZERO,
            latency: Latency::new(),
            first_byte: Latency::new(),
            refused: Latency::new(),
            body_bytes: 0,
            server_cpu: Duration::ZERO,
            generator_cpu: Duration::ZERO,
            offered: None,
            clients: 0,
        }
    }

    /// Answers a second.
    pub(crate) fn rate(&self) -> f64 {
        self.latency.count() as f64 / self.wall.as_secs_f64()
    }

    /// Server CPU of one answer in microseconds.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.server_cpu.as_secs_f64() * 1e6 / self.latency.count() as f64
    }

    /// Bytes of bodies a second, in millions.
    pub(crate) fn megabytes_per_s(&self) -> f64 {
        self.body_bytes as f64 / 1e6 / self.wall.as_secs_f64()
    }

    /// Bytes of bodies for a second of the server's CPU, in millions.
    pub(crate) fn megabytes_per_core_s(&self) -> f64 {
        self.body_bytes as f64 / 1e6 / self.server_cpu.as_secs_f64()
    }

    /// The share of the window that the server was on a core (above 1 with several cores).
    pub(crate) fn server_busy(&self) -> f64 {
        self.server_cpu.as_secs_f64() / self.wall.as_secs_f64()
    }

    /// The share of the window that the generator was on its core.
    pub(crate) fn generator_busy(&self) -> f64 {
        self.generator_cpu.as_secs_f64() / self.wall.as_secs_f64()
    }

    /// CPU of the generator for one answer in microseconds.
    pub(crate) fn generator_us(&self) -> f64 {
        self.generator_cpu.as_secs_f64() * 1e6 / self.latency.count() as f64
    }

    /// The window measured the generator, or a paced load was not kept up: its figures say nothing about the
    /// server.
    pub(crate) fn void(&self) -> bool {
        self.generator_busy() > limits::GENERATOR_BUSY_MAX
            || self.offered.is_some_and(|rate| self.behind(rate))
    }

    /// Fewer answers than were due; the window may have cut one burst.
    fn behind(&self, offered: f64) -> bool {
        let due = offered * self.wall.as_secs_f64();
        ((self.latency.count() + self.clients as u64) as f64) < due * limits::PACE_KEPT_MIN
    }
}

/// Drives one server through one window.
pub(crate) fn drive(load: &Load<'_>, requests: &mut Requests) -> Result<Window, Error> {
    let mut driver = Driver::connect(load, requests)?;
    driver.run_for(load.warm_up)?;
    driver.counted = Counted::new();
    let before = Sample::take(load)?;
    driver.run_for(load.window)?;
    let window = Sample::take(load)?.since(&before, driver.counted.clone(), load);
    driver.finish()?;
    Ok(window)
}

/// The counters at one moment.
struct Sample {
    at: Instant,
    own: Duration,
    server: Vec<Cpu>,
}

impl Sample {
    fn take(load: &Load<'_>) -> Result<Sample, Error> {
        let own = procfs::own_thread_cpu();
        let server = load.pids.iter().map(|pid| Cpu::of(*pid)).collect::<Result<_, _>>();
        let server = server.map_err(Error::system("reading the server's CPU"))?;
        Ok(Sample { at: Instant::now(), own, server })
    }

    fn since(&self, before: &Sample, counted: Counted, load: &Load<'_>) -> Window {
        let ticks = procfs::ticks_per_second();
        let pairs = self.server.iter().zip(&before.server);
        let offered = match load.pace {
            Pace::Closed => None,
            Pace::Paced(rate) => Some(rate),
        };
        Window {
            wall: self.at - before.at,
            latency: counted.latency,
            first_byte: counted.first_byte,
            refused: counted.refused,
            body_bytes: counted.body_bytes,
            server_cpu: pairs.map(|(now, before)| now.since(before, ticks)).sum(),
            generator_cpu: self.own.saturating_sub(before.own),
            offered,
            clients: load.clients,
        }
    }
}

/// What is counted of answers.
#[derive(Clone)]
struct Counted {
    latency: Latency,
    first_byte: Latency,
    refused: Latency,
    body_bytes: u64,
}

impl Counted {
    fn new() -> Counted {
        Counted {
            latency: Latency::new(),
            first_byte: Latency::new(),
            refused: Latency::new(),
            body_bytes: 0,
        }
    }

    /// Counts an answer that was complete after `took`, and whose body began after `first`, if that was earlier.
    fn add(&mut self, answer: Answer, took: Duration, first: Option<Duration>) {
        if answer.status == BUSY {
            return self.refused.record(took);
        }
        self.latency.record(took);
        self.first_byte.record(first.unwrap_or(took));
        self.body_bytes += answer.body_bytes;
    }
}

/// The status of a server that has enough to do (RFC 9110 15.6.4). Whether it is admitted is the request's.
const BUSY: u16 = 503;

/// One connection and the request that is in flight on it.
struct Connection {
    socket: TcpStream,
    scanner: Scanner,
    /// The request, and how much of it the socket has taken.
    out: Vec<u8>,
    sent: usize,
    template: usize,
    since: Instant,
    /// When the body of an answer began that came in several reads.
    first: Option<Instant>,
    /// The answer so far, when bodies are compared.
    kept: Vec<u8>,
}

struct Driver<'a> {
    load: &'a Load<'a>,
    requests: &'a mut Requests,
    poll: Poll,
    connections: Vec<Connection>,
    idle: VecDeque<usize>,
    arrivals: Arrivals,
    counted: Counted,
    buffer: Box<[u8]>,
    last_answer: Instant,
}

const PACE_TOKEN: Token = Token(usize::MAX);

impl<'a> Driver<'a> {
    fn connect(load: &'a Load<'a>, requests: &'a mut Requests) -> Result<Driver<'a>, Error> {
        if load.clients == 0 || load.clients > limits::CLIENTS {
            return Err(Error::Options(format!("clients must be 1 to {}", limits::CLIENTS)));
        }
        let poll = Poll::new().map_err(Error::system("epoll"))?;
        let mut connections = Vec::with_capacity(load.clients);
        for index in 0..load.clients {
            let connection = connect(load.address, &poll, Token(index));
            connections.push(connection.map_err(|source| Error::Connection { name: load.name, source })?);
        }
        let arrivals = Arrivals::start(load.pace, load.clients, &poll, PACE_TOKEN)
            .map_err(Error::system("the pacing timer"))?;
        Ok(Driver {
            load,
            requests,
            poll,
            idle: (0..connections.len()).collect(),
            connections,
            arrivals,
            counted: Counted::new(),
            buffer: vec![0; 256 * 1024].into_boxed_slice(),
            last_answer: Instant::now(),
        })
    }

    fn run_for(&mut self, duration: Duration) -> Result<(), Error> {
        let mut now = Instant::now();
        let end = now + duration;
        let mut events = Events::with_capacity(1024);
        self.send_due(now)?;
        while now < end {
            self.wait(&mut events, end - now)?;
            now = Instant::now();
        }
        Ok(())
    }

    /// Sends nothing more and waits for what is in flight.
    fn finish(&mut self) -> Result<(), Error> {
        self.arrivals.stop();
        let mut events = Events::with_capacity(1024);
        while self.idle.len() < self.connections.len() {
            self.wait(&mut events, limits::ANSWER_WAIT)?;
        }
        Ok(())
    }

    fn wait(&mut self, events: &mut Events, at_most: Duration) -> Result<(), Error> {
        match self.poll.poll(events, Some(at_most.min(Duration::from_millis(100)))) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(Error::System { what: "epoll", source: error });
            }
            _ => {}
        }
        for event in events.iter() {
            self.take(event)?;
        }
        if events.is_empty() && self.idle.len() < self.connections.len() {
            self.check_silence()?;
        }
        Ok(())
    }

    fn check_silence(&self) -> Result<(), Error> {
        if self.last_answer.elapsed() < limits::ANSWER_WAIT {
            return Ok(());
        }
        Err(Error::Silent { name: self.load.name, seconds: limits::ANSWER_WAIT.as_secs() })
    }

    fn take(&mut self, event: &Event) -> Result<(), Error> {
        if event.token() == PACE_TOKEN {
            self.arrivals.acknowledge();
            return self.send_due(Instant::now());
        }
        let index = event.token().0;
        if event.is_writable() && self.connections[index].sent < self.connections[index].out.len() {
            self.write(index)?;
        }
        if event.is_readable() { self.read(index) } else { Ok(()) }
    }

    /// Sends on idle connections as long as a request is due.
    fn send_due(&mut self, now: Instant) -> Result<(), Error> {
        while let Some(&index) = self.idle.front() {
            let Some(due) = self.arrivals.take(now) else { break };
            self.idle.pop_front();
            let connection = &mut self.connections[index];
            connection.out.clear();
            connection.sent = 0;
            connection.since = due;
            connection.template = self.requests.next(&mut connection.out);
            self.write(index)?;
        }
        Ok(())
    }

    fn write(&mut self, index: usize) -> Result<(), Error> {
        let connection = &mut self.connections[index];
        while connection.sent < connection.out.len() {
            match connection.socket.write(&connection.out[connection.sent..]) {
                Ok(written) => connection.sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Connection { name: self.load.name, source }),
            }
        }
        Ok(())
    }

    /// Reads until the socket is empty. A short read means empty (epoll(7): with edge triggering, a stream
    /// that gave less than asked is drained), which saves the second `read` of nearly every answer.
    fn read(&mut self, index: usize) -> Result<(), Error> {
        loop {
            let length = match self.connections[index].socket.read(&mut self.buffer) {
                Ok(0) => return Err(self.closed()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(Error::Connection { name: self.load.name, source }),
            };
            self.scan(index, length)?;
            if length < self.buffer.len() {
                return Ok(());
            }
        }
    }

    fn closed(&self) -> Error {
        let source =
            io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the server during the measurement");
        Error::Connection { name: self.load.name, source }
    }

    fn scan(&mut self, index: usize, length: usize) -> Result<(), Error> {
        let connection = &mut self.connections[index];
        let bytes = &self.buffer[..length];
        let fed = connection.scanner.feed(bytes);
        let (used, answer) = fed.map_err(|fault| Error::Response { name: self.load.name, fault })?;
        if self.load.compare_bodies {
            connection.kept.extend_from_slice(&bytes[..used]);
        }
        if used < length {
            return Err(self.wrong("bytes after the end of its answer".to_owned()));
        }
        match answer {
            Some(answer) => self.complete(index, answer),
            None => {
                if connection.first.is_none() && connection.scanner.in_body() {
                    connection.first = Some(Instant::now());
                }
                Ok(())
            }
        }
    }

    fn complete(&mut self, index: usize, answer: Answer) -> Result<(), Error> {
        let now = Instant::now();
        self.check(index, answer)?;
        let connection = &mut self.connections[index];
        connection.kept.clear();
        let first = connection.first.take().map(|first| first - connection.since);
        self.counted.add(answer, now - connection.since, first);
        self.last_answer = now;
        self.idle.push_back(index);
        self.send_due(now)
    }

    fn check(&self, index: usize, answer: Answer) -> Result<(), Error> {
        let connection = &self.connections[index];
        let expect = self.requests.expect(connection.template);
        if expect.may_be_busy && answer.status == BUSY {
            let said = answer.retry_after.then_some(());
            return said.ok_or_else(|| self.wrong(format!("status {BUSY} without Retry-After")));
        }
        if answer.status != expect.status {
            return Err(self.wrong(format!("status {} instead of {}", answer.status, expect.status)));
        }
        if let Some(body_bytes) = expect.body_bytes
            && answer.body_bytes != body_bytes
        {
            return Err(self.wrong(format!("a body of {} bytes instead of {body_bytes}", answer.body_bytes)));
        }
        let body_at =
            connection.kept.len().saturating_sub(usize::try_from(answer.body_bytes).unwrap_or(usize::MAX));
        match &expect.body {
            Some(body) if self.load.compare_bodies && connection.kept[body_at..] != **body => {
                let got = String::from_utf8_lossy(&connection.kept[body_at..]);
                Err(self.wrong(format!("another body than before: {:.300}", got)))
            }
            _ => Ok(()),
        }
    }

    fn wrong(&self, what: String) -> Error {
        Error::Wrong { name: self.load.name, what }
    }
}

fn connect(address: SocketAddr, poll: &Poll, token: Token) -> io::Result<Connection> {
    let socket = std::net::TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_nonblocking(true)?;
    // The cheapest congestion control: on the loopback there is no congestion. A system that does not allow
    // it keeps its own.
    let _ = rustix::net::sockopt::set_tcp_congestion(&socket, "reno");
    let mut socket = TcpStream::from_std(socket);
    poll.registry().register(&mut socket, token, Interest::READABLE | Interest::WRITABLE)?;
    Ok(Connection {
        socket,
        scanner: Scanner::default(),
        out: Vec::with_capacity(1024),
        sent: 0,
        template: 0,
        since: Instant::now(),
        first: None,
        kept: Vec::new(),
    })
}

#[cfg(test)]
mod tests;
