//! Memory of a result on its way to a slow reader, whatever its length.
//!
//! A server of its own, so that nothing that other cells left behind hides what this costs. First every column is
//! read once, which fills the cache of columns and starts the engine; what the process holds then is the
//! beginning. Then a reader first waits, then reads slowly: once through the table, once through seventeen
//! times its length. What counts is the peak, as the kernel notes it where it may be reset and as it is looked at
//! between reads, above the least that the process held while it was quiet, before or after: what an allocator
//! keeps from earlier work must not hide what this work takes.

use super::answer::Format;
use super::archive::{TABLE, Tap, World, fields};
use super::stars::{self, Column};
use crate::args::Mode;
use crate::bench::Bench;
use crate::chunked::Chunked;
use crate::client;
use crate::error::Error;
use crate::figures::Spread;
use crate::limits;
use crate::procfs;
use crate::report::{Cell, Findings};
use crate::request::{Expect, Template};
use crate::scanner::{self, Framing};
use crate::server::Server;
use crate::verdict::{Bound, Target};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const NAME: &str = "memory of a streamed result";
const MIB: f64 = 1024.0 * 1024.0;
/// The largest number of a star by which the table is repeated: so often it is in the long result.
const REPEATED: u64 = 17;
/// Bytes of one slow read, and the pause after it.
const READ_BYTES: usize = 128 << 10;
const PAUSE: Duration = Duration::from_millis(1);
/// Memory is looked at after so many reads.
const LOOK_EVERY: usize = 8;

/// How long the reader waits before its first read: longer than the server has patience.
fn first_pause(mode: Mode) -> Duration {
    match mode {
        Mode::Full | Mode::Quick => Duration::from_millis(1500),
        Mode::Smoke => Duration::from_millis(50),
    }
}

/// How long the process is left alone before its memory is read.
fn settle(mode: Mode) -> Duration {
    match mode {
        Mode::Full => Duration::from_secs(2),
        Mode::Quick => Duration::from_millis(500),
        Mode::Smoke => Duration::from_millis(20),
    }
}

/// Measures and adds to the findings.
pub(super) fn measure(bench: &mut Bench<'_>, world: &World, findings: &mut Findings) -> Result<(), Error> {
    (bench.progress)(&format!("{NAME}: a fresh server"));
    let server = world.serve(bench, &[])?;
    std::thread::sleep(settle(bench.options.mode));
    let idle = resident(&server)?;
    warm(&server)?;
    let mut quiet = quietly(bench.options.mode, &server)?;
    let before = quiet;
    let mut peaks = Vec::new();
    let mut figures = BTreeMap::from([("idle_mib", Spread::once(idle / MIB))]);
    for (rows, megabytes, grown, times) in [
        ("short_rows", "short_mb", "short_grown_mib", 1),
        ("long_rows", "long_mb", "long_grown_mib", REPEATED),
    ] {
        (bench.progress)(&format!("{NAME}: {times} times the table to a slow reader"));
        let read = slowly(bench.options.mode, &server, times)?;
        check(&server, world, times, &read)?;
        quiet = quiet.min(quietly(bench.options.mode, &server)?);
        figures.insert(rows, Spread::once(read.lines.rows as f64));
        figures.insert(megabytes, Spread::once(read.bytes as f64 / 1e6));
        peaks.push((grown, read.peak));
    }
    figures.insert("before_mib", Spread::once(before / MIB));
    figures.insert("quiet_mib", Spread::once(quiet / MIB));
    figures.extend(peaks.iter().map(|(grown, peak)| (*grown, Spread::once((peak - quiet).max(0.0) / MIB))));
    server.stop()?;
    let bound = Bound::AtMost(limits::STREAM_MIB_MAX);
    let grown = figures.get("long_grown_mib").copied();
    let name = "a streamed result to a slow reader: MiB that the server grows";
    findings.targets.push(Target::judge(name, bound, None, grown, bench.options.judging()));
    findings.cells.push(Cell {
        name: NAME.to_owned(),
        side: "archive".to_owned(),
        load: "slow reader",
        clients: 1,
        offered_per_s: None,
        void_rounds: 0,
        figures,
    });
    Ok(())
}

fn resident(server: &Server) -> Result<f64, Error> {
    let bytes = procfs::resident_bytes(server.pid()).map_err(Error::system("reading the server's memory"))?;
    Ok(bytes as f64)
}

/// What the process holds when nothing happens: after a pause, and a tiny query that lets its allocator give back
/// what it does not need.
fn quietly(mode: Mode, server: &Server) -> Result<f64, Error> {
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        std::thread::sleep(settle(mode) / 3);
        let adql = format!("SELECT COUNT(*) FROM {TABLE} WHERE hip <= 2");
        let mut tap = Tap::connect(server)?;
        tap.send(&Template::form(&tap.host, "/tap/sync", &fields(&adql, Format::Csv), Expect::status(200)))?;
        least = least.min(resident(server)?);
    }
    Ok(least)
}

/// Reads every column once, and joins a little.
fn warm(server: &Server) -> Result<(), Error> {
    let mut tap = Tap::connect(server)?;
    let largest: Vec<String> = Column::ALL.iter().map(|column| format!("MAX({})", column.name())).collect();
    let queries = [
        format!("SELECT {} FROM {TABLE}", largest.join(", ")),
        format!("SELECT COUNT(*) FROM {TABLE} AS a, {TABLE} AS b WHERE a.hip <= 2 AND b.hip <= 2"),
    ];
    for adql in &queries {
        let fields = fields(adql, Format::Csv);
        tap.send(&Template::form(&tap.host, "/tap/sync", &fields, Expect::status(200)))?;
    }
    Ok(())
}

/// The table so many times.
fn query(times: u64) -> String {
    if times == 1 {
        return format!("SELECT {} FROM {TABLE}", stars::list(&Column::ALL));
    }
    let columns: Vec<String> = Column::ALL.iter().map(|column| format!("a.{}", column.name())).collect();
    format!("SELECT {} FROM {TABLE} AS a, {TABLE} AS b WHERE b.hip <= {times}", columns.join(", "))
}

/// What a slow reader saw.
struct Slow {
    lines: Lines,
    bytes: u64,
    peak: f64,
}

fn slowly(mode: Mode, server: &Server, times: u64) -> Result<Slow, Error> {
    let name = server.name();
    let broken = |source| Error::Connection { name, source };
    let mut socket = client::connect(server.address()).map_err(broken)?;
    let adql = query(times);
    let limit = limits::STREAM_ROWS_MAX.to_string();
    let fields = [&fields(&adql, Format::Csv)[..], &[("MAXREC", limit.as_str())]].concat();
    let mut request = Vec::new();
    let host = server.address().to_string();
    Template::form(&host, "/tap/sync", &fields, Expect::status(200)).write(0, &mut request);
    let is_noted = procfs::reset_peak(server.pid()).is_ok();
    socket.write_all(&request).map_err(broken)?;
    std::thread::sleep(first_pause(mode));
    let mut seen = read(server, &mut socket)?;
    if is_noted {
        let noted = procfs::peak_bytes(server.pid()).map_err(Error::system("reading the server's memory"))?;
        seen.peak = seen.peak.max(noted as f64);
    }
    Ok(seen)
}

/// Reads an answer of any length with pauses.
fn read(server: &Server, socket: &mut TcpStream) -> Result<Slow, Error> {
    let name = server.name();
    let deadline = Instant::now() + limits::STREAM_WAIT;
    let mut seen = Slow { lines: Lines::default(), bytes: 0, peak: resident(server)? };
    let (mut buffer, mut head, mut body) = (vec![0; READ_BYTES], Vec::new(), None::<Remaining>);
    for turn in 0.. {
        let length = socket.read(&mut buffer).map_err(|source| Error::Connection { name, source })?;
        if length == 0 {
            let source = std::io::ErrorKind::UnexpectedEof.into();
            return Err(Error::Connection { name, source });
        }
        let mut fresh = &buffer[..length];
        if body.is_none() {
            head.extend_from_slice(fresh);
            let parsed = scanner::parse_head(&head).map_err(|fault| Error::Response { name, fault })?;
            let Some(parsed) = parsed else { continue };
            if parsed.status != 200 {
                let text = String::from_utf8_lossy(&head);
                return Err(Error::Wrong { name, what: format!("{}: {text:.600}", parsed.status) });
            }
            body = Some(Remaining::new(parsed.framing));
            fresh = &head[parsed.bytes..];
        }
        let Some(remaining) = &mut body else { continue };
        let mut take = |bytes: &[u8]| {
            seen.lines.feed(bytes);
            seen.bytes += bytes.len() as u64;
        };
        let ended = remaining.feed(fresh, &mut take).map_err(|fault| Error::Response { name, fault })?;
        if ended || turn % LOOK_EVERY == 0 {
            seen.peak = seen.peak.max(resident(server)?);
        }
        if ended {
            break;
        }
        if Instant::now() > deadline {
            return Err(Error::Silent { name, seconds: limits::STREAM_WAIT.as_secs() });
        }
        std::thread::sleep(PAUSE);
    }
    Ok(seen)
}

/// What is still to come of a body.
enum Remaining {
    Length(u64),
    Chunks(Chunked),
}

impl Remaining {
    fn new(framing: Framing) -> Remaining {
        match framing {
            Framing::Length(length) => Remaining::Length(length),
            Framing::Chunked => Remaining::Chunks(Chunked::new(limits::STREAM_BYTES_MAX)),
        }
    }

    /// Answers whether that was all.
    fn feed(&mut self, bytes: &[u8], take: &mut impl FnMut(&[u8])) -> Result<bool, scanner::Fault> {
        match self {
            Remaining::Length(left) => {
                take(bytes);
                *left = left.saturating_sub(bytes.len() as u64);
                Ok(*left == 0)
            }
            Remaining::Chunks(chunked) => Ok(chunked.feed(bytes, take)?.1),
        }
    }
}

/// Counts the lines behind the first one, and adds up the numbers that they begin with.
#[derive(Debug, Default)]
struct Lines {
    rows: u64,
    sum: u64,
    heading_passed: bool,
    number: u64,
    in_number: bool,
}

impl Lines {
    fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                b'\n' if !self.heading_passed => (self.heading_passed, self.in_number) = (true, true),
                b'\n' => {
                    self.rows += 1;
                    self.sum += self.number;
                    (self.number, self.in_number) = (0, true);
                }
                b'0'..=b'9' if self.in_number => {
                    self.number = self.number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                }
                _ => self.in_number = false,
            }
        }
    }
}

/// Every star as often as it should be there: counted, and added up.
fn check(server: &Server, world: &World, times: u64, read: &Slow) -> Result<(), Error> {
    let rows = world.stars.count() as u64 * times;
    let sum = world.stars.hip_sum() * times;
    if (read.lines.rows, read.lines.sum) == (rows, sum) {
        return Ok(());
    }
    let what = format!(
        "{} rows that add up to {}, instead of {rows} that add up to {sum}",
        read.lines.rows, read.lines.sum
    );
    Err(Error::Wrong { name: server.name(), what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_added_up_wherever_they_are_cut() {
        let text = b"hip,ra\n12,3.5\n7,\n100,9\n";
        for cut in 1..text.len() {
            let mut lines = Lines::default();
            text.chunks(cut).for_each(|piece| lines.feed(piece));
            assert_eq!((lines.rows, lines.sum), (3, 119), "{cut}");
        }
    }

    #[test]
    fn bodies_end_in_either_framing() {
        let mut all = Vec::new();
        let mut length = Remaining::new(Framing::Length(5));
        assert!(!length.feed(b"abc", &mut |bytes| all.extend_from_slice(bytes)).unwrap());
        assert!(length.feed(b"de", &mut |bytes| all.extend_from_slice(bytes)).unwrap());
        let mut chunks = Remaining::new(Framing::Chunked);
        assert!(!chunks.feed(b"2\r\nfg\r\n", &mut |bytes| all.extend_from_slice(bytes)).unwrap());
        assert!(chunks.feed(b"0\r\n\r\n", &mut |bytes| all.extend_from_slice(bytes)).unwrap());
        assert_eq!(all, b"abcdefg");
    }
}
