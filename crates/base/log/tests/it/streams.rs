//! Power cuts while several logs of a directory roll, reuse files, are dropped at the front and compacted.
//!
//! A ledger outside the machine keeps what each log was given and told. After a cut each log must hold what it
//! had promised to keep: an acknowledged payload of a log that flushes on commit, a flushed one of a log that
//! flushes periodically, what a finished compaction left; and nothing that was never given to it. Everything
//! follows from the seed and the cut.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use trifid_base_log::{
    CommitError, DataDir, Durability, Entry, Log, LogId, LogOptions, Position, ReplayFrom, Rewrite, Stepper,
    Ticket,
};
use trifid_base_sim::{Fault, OpKind, SimDisk};

use crate::support::{Content, options, record_batch};

const ACTIONS: usize = 70;
const LOGS: u64 = 3;

/// What may lie at a position: one of these, or nothing.
type Choices = Vec<Option<Vec<u8>>>;

/// What one log was given and told.
#[derive(Default)]
struct Ledger {
    given: BTreeMap<u64, Choices>,
    /// Everything below must be there after a cut.
    promised: u64,
    /// Everything below may have been dropped.
    floor: u64,
}

/// The bytes of a batch without those that a reader is given in their place.
fn normal(payload: &[u8]) -> Vec<u8> {
    let mut payload = payload.to_vec();
    if payload.len() >= 61 && payload[16] == 2 {
        payload[..8].fill(0);
        payload[12..16].fill(0);
    }
    payload
}

impl Ledger {
    /// Holds what a log has, in order, up to `next`, to what it promised.
    fn check(&mut self, found: &[(u64, Vec<u8>)], first: u64, next: u64) -> Result<(), String> {
        if next < self.promised {
            return Err(format!("ends at {next}, promised were {}", self.promised));
        }
        if first > self.floor {
            return Err(format!("begins at {first}, dropped was what is below {}", self.floor));
        }
        let mut found: BTreeMap<u64, Vec<u8>> = found.iter().cloned().collect();
        self.given.split_off(&next);
        for (position, choices) in &mut self.given {
            let there = found.remove(position);
            if *position >= self.floor && !choices.contains(&there) {
                return Err(format!("{:?} at {position}", there.map(|payload| payload.len())));
            }
            *choices = vec![there];
        }
        if let Some((position, _)) = found.first_key_value() {
            return Err(format!("a foreign payload at {position}"));
        }
        self.promised = next;
        Ok(())
    }
}

fn settings(log: u64) -> LogOptions {
    let interval = Duration::from_secs(3600);
    let durability = if log == 1 { Durability::Periodic { interval } } else { Durability::OnCommit };
    let (segment_bytes, prewrite_bytes) = if log == 2 { (20_000, 3_000) } else { (5_000, 1_000) };
    LogOptions { durability, segment_bytes: Some(segment_bytes), prewrite_bytes, ..LogOptions::default() }
}

/// A directory and its logs, on a disk whose power may go.
struct Machine {
    _dir: DataDir,
    stepper: Stepper,
    logs: Vec<Log>,
}

impl Machine {
    /// Opens all logs and holds them to their ledgers; nothing when the power goes meanwhile.
    fn open(disk: &SimDisk, ledgers: &mut [Ledger], rng: &mut Rng) -> Result<Option<Self>, String> {
        let opened = DataDir::open_stepped(Arc::new(disk.clone()), options(6_000, rng.u64(..)));
        let Ok((dir, stepper)) = opened else { return Ok(None) };
        let mut logs = Vec::new();
        for (id, ledger) in (0..LOGS).zip(ledgers) {
            let mut content = Content::default();
            let from = if rng.bool() { ReplayFrom::Start } else { ReplayFrom::Newest };
            let opened = dir.recover_with(LogId(id), settings(id), from, &mut content);
            let (recovered, recovery) = match opened {
                Ok(opened) => opened,
                Err(_) if disk.is_dead() => return Ok(None),
                Err(error) => return Err(format!("log {id} does not open: {error}")),
            };
            let log = recovered.start(Arc::new(()));
            let Some(found) = read_all(disk, &log)? else { return Ok(None) };
            if from == ReplayFrom::Start {
                let replayed =
                    content.frames.iter().map(|(position, _, payload)| (*position, normal(payload)));
                if replayed.ne(found.iter().cloned()) {
                    return Err(format!("log {id} is read otherwise than it is replayed"));
                }
            }
            let checked = ledger.check(&found, log.first().get(), recovery.next.get());
            checked.map_err(|loss| format!("log {id}: {loss}"))?;
            logs.push(log);
        }
        Ok(Some(Machine { _dir: dir, stepper, logs }))
    }

    fn append(&self, ledgers: &mut [Ledger], rng: &mut Rng) -> Option<(usize, Ticket)> {
        let at = rng.usize(..self.logs.len());
        let len = match rng.u8(..30) {
            0 => rng.usize(9_000..20_000),
            1..6 => rng.usize(..20),
            _ => rng.usize(..1_200),
        };
        let batch = record_batch(rng.i64(0..10_000), len, rng.u64(..));
        let (ticket, payload) = match rng.u8(..4) {
            0 => (self.logs[at].append(&[&batch[21..]]), batch.slice(21..)),
            _ => (self.logs[at].append_batch(batch.clone(), rng.u32(1..4)), batch),
        };
        let ticket = ticket.ok()?;
        ledgers[at].given.insert(ticket.position.get(), vec![Some(normal(&payload))]);
        Some((at, ticket))
    }

    fn settle(&self, ledgers: &mut [Ledger], tickets: &mut Vec<(usize, Ticket)>) {
        tickets.retain(|(at, ticket)| match ticket.decided() {
            Some(Err(CommitError::NoSpace)) => {
                ledgers[*at].given.insert(ticket.position.get(), vec![None]);
                false
            }
            decided => decided.is_none(),
        });
        for (log, ledger) in self.logs.iter().zip(ledgers) {
            ledger.promised = ledger.promised.max(log.durable_mark().get());
        }
    }

    /// Compacts some sealed segments of some log, as one if they are several.
    fn compact(&self, ledgers: &mut [Ledger], rng: &mut Rng) {
        let at = rng.usize(..self.logs.len());
        let Ok(segments) = self.logs[at].segments() else { return };
        let sealed: Vec<_> = segments.iter().filter(|segment| segment.sealed).collect();
        let first = rng.usize(..=sealed.len());
        let run = &sealed[first..(first + rng.usize(1..4)).min(sealed.len())];
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return };
        let mut decided = BTreeMap::new();
        let done = self.logs[at].compact_as_one(first.base..last.end, &mut |entry| {
            let rewrite = decide(entry, rng);
            decided.insert(entry.position.get(), rewrite.clone());
            rewrite
        });
        for (position, rewrite) in decided {
            let after = match rewrite {
                Rewrite::Keep => continue,
                Rewrite::Drop => None,
                Rewrite::Replace(payload) => Some(normal(&payload)),
            };
            let choices = ledgers[at].given.get_mut(&position).unwrap();
            if done.is_ok() {
                choices.clear();
            }
            choices.push(after);
        }
    }

    fn retain(&self, ledgers: &mut [Ledger], rng: &mut Rng) {
        let at = rng.usize(..self.logs.len());
        let log = &self.logs[at];
        match rng.u8(..3) {
            0 => {
                let to = rng.u64(ledgers[at].floor..=ledgers[at].promised.max(ledgers[at].floor));
                ledgers[at].floor = to;
                let _ = log.truncate_front(Position::new(to));
            }
            1 => {
                // It goes by what was asked, for a removal that the cut kept from being told.
                let keep = rng.u64(..30_000);
                ledgers[at].floor = ledgers[at].floor.max(kept_by_size(log, keep));
                let _ = log.apply_retention(0, None, Some(keep));
            }
            _ => {
                let _ = log.roll();
            }
        }
    }
}

/// Where a log begins after it was told to keep so many bytes.
fn kept_by_size(log: &Log, keep: u64) -> u64 {
    let Ok(segments) = log.segments() else { return log.published().get() };
    let mut total: u64 = segments.iter().map(|segment| segment.bytes).sum();
    let goes = |segment: &&trifid_base_log::SegmentInfo| {
        total = total.saturating_sub(segment.bytes);
        segment.sealed && total >= keep
    };
    let gone = segments.iter().take_while(goes).count();
    segments[gone.min(segments.len() - 1)].base.get()
}

fn decide(entry: &Entry, rng: &mut Rng) -> Rewrite {
    match rng.u8(..4) {
        0 => Rewrite::Drop,
        1 if entry.is_record_batch => Rewrite::Replace(record_batch(7, rng.usize(..40), rng.u64(..))),
        1 => Rewrite::Replace(Bytes::from(vec![9; rng.usize(..40)])),
        _ => Rewrite::Keep,
    }
}

type Found = Vec<(u64, Vec<u8>)>;

/// All that a log has, page by page; nothing when the power is gone.
fn read_all(disk: &SimDisk, log: &Log) -> Result<Option<Found>, String> {
    let (mut next, mut found) = (log.first(), Vec::new());
    while next < log.published() {
        match log.read_batches(next, 3_000) {
            Ok(page) => {
                found.extend(page.entries.iter().map(|entry| (entry.position.get(), normal(&entry.payload))));
                next = page.next;
            }
            Err(_) if disk.is_dead() => return Ok(None),
            Err(error) => return Err(format!("log {} cannot be read: {error}", log.id())),
        }
    }
    Ok(Some(found))
}

/// Works until the power is cut or the actions are used up.
fn work(disk: &SimDisk, ledgers: &mut [Ledger], rng: &mut Rng) -> Result<(), String> {
    let Some(mut machine) = Machine::open(disk, ledgers, rng)? else { return Ok(()) };
    let mut tickets = Vec::new();
    for _ in 0..ACTIONS {
        if disk.is_dead() {
            break;
        }
        match rng.u8(..32) {
            0..16 => tickets.extend(machine.append(ledgers, rng)),
            16..23 => {
                machine.stepper.step();
            }
            23 => machine.stepper.idle(),
            24 => machine.stepper.flush_periodic(),
            25 | 26 => machine.compact(ledgers, rng),
            27..30 => machine.retain(ledgers, rng),
            30 => disk.set_room(Some(rng.u64(..3_000) + disk.used())),
            _ => disk.set_room(None),
        }
        machine.settle(ledgers, &mut tickets);
    }
    Ok(())
}

fn length(seed: u64) -> u64 {
    let disk = SimDisk::new();
    let mut ledgers: Vec<Ledger> = (0..LOGS).map(|_| Ledger::default()).collect();
    work(&disk, &mut ledgers, &mut Rng::with_seed(seed)).unwrap();
    disk.ops()
}

/// Work until the cut; open and work with the power cut again, early and later; open.
fn run(seed: u64, cut: u64, prepare: &dyn Fn(&SimDisk)) -> Result<(), String> {
    let mut ledgers: Vec<Ledger> = (0..LOGS).map(|_| Ledger::default()).collect();
    let mut disk = SimDisk::new();
    let mut rng = Rng::with_seed(seed ^ cut << 32);
    for (round, cut) in [cut, rng.u64(..24), rng.u64(10..120)].into_iter().enumerate() {
        prepare(&disk);
        disk.cut_at(cut);
        let mut rng = if round == 0 { Rng::with_seed(seed) } else { rng.fork() };
        work(&disk, &mut ledgers, &mut rng)?;
        disk = disk.power_cut(rng.u64(..));
    }
    prepare(&disk);
    work(&disk, &mut ledgers, &mut rng)?;
    // The death of the process takes nothing that was acknowledged.
    disk = disk.kill();
    Machine::open(&disk, &mut ledgers, &mut rng).map(drop)
}

/// Every `step`th operation of every seed is a cut; what each loses, if anything.
fn cuts(step: usize, prepare: &dyn Fn(&SimDisk)) -> impl Iterator<Item = (u64, u64, Result<(), String>)> {
    (0u64..)
        .flat_map(move |seed| (0..length(seed)).step_by(step).map(move |cut| (seed, cut)))
        .map(move |(seed, cut)| (seed, cut, run(seed, cut, prepare)))
}

/// `TRIFID_CUTS` says how many; a thousand take some ten seconds.
#[test]
fn several_logs_keep_their_promises_at_any_cut() {
    let count = std::env::var("TRIFID_CUTS").map_or(1_000, |count| count.parse().unwrap());
    for (seed, cut, outcome) in cuts(1, &|_| {}).take(count) {
        outcome.unwrap_or_else(|loss| panic!("seed {seed}, cut {cut}: {loss}"));
    }
}

/// What the drill is for must happen in it.
#[test]
fn the_drill_rolls_reuses_compacts_and_drops() {
    let seen = Arc::new(parking_lot::Mutex::new(BTreeMap::<&str, usize>::new()));
    let watch = |disk: &SimDisk| {
        let seen = seen.clone();
        disk.on_op(move |op| {
            let extension = op.path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            let what = match (op.kind, extension) {
                (OpKind::Create, "seg") => "created",
                (OpKind::SyncData, "old") => "reused",
                (OpKind::SyncAll, "new") => "compacted",
                (OpKind::Rename, "old") => "dropped",
                (OpKind::Create, "idx") => "indexed",
                _ => "other",
            };
            *seen.lock().entry(what).or_default() += 1;
            None
        });
    };
    for (_, _, outcome) in cuts(97, &watch).take(20) {
        outcome.unwrap();
    }
    let seen = seen.lock();
    for what in ["created", "reused", "compacted", "dropped", "indexed"] {
        assert!(seen.get(what).is_some_and(|count| *count >= 20), "{what}: {seen:?}");
    }
}

/// Runs the same with flushes that answer and do nothing, and wants to see it fail.
fn fails_without(flush: impl Fn(OpKind, &str, Option<(OpKind, String)>) -> bool + Copy + Send + 'static) {
    let sabotage = move |disk: &SimDisk| {
        let mut before = None;
        disk.on_op(move |op| {
            let path = op.path.to_str().unwrap();
            let lies = flush(op.kind, path, before.take());
            before = Some((op.kind, path.to_owned()));
            lies.then_some(Fault::Lie)
        });
    };
    assert!(cuts(1, &sabotage).take(4_000).any(|(_, _, outcome)| outcome.is_err()), "nobody noticed");
}

#[test]
fn fails_without_the_flush_of_a_compacted_file() {
    fails_without(|kind, path, _| kind == OpKind::SyncAll && path.ends_with(".new"));
}

#[test]
fn fails_without_the_flush_of_the_name_of_a_compacted_file() {
    let renamed = |before: Option<(OpKind, String)>| {
        before.is_some_and(|(kind, path)| kind == OpKind::Rename && path.ends_with(".seg"))
    };
    fails_without(move |kind, _, before| kind == OpKind::SyncDir && renamed(before));
}

#[test]
fn fails_without_the_flush_of_a_reused_files_header() {
    fails_without(|kind, path, _| kind == OpKind::SyncData && path.ends_with(".old"));
}

#[test]
fn fails_without_the_flush_of_the_name_of_a_dropped_file() {
    let dropped = |before: Option<(OpKind, String)>| {
        before.is_some_and(|(kind, path)| kind == OpKind::Rename && path.ends_with(".old"))
    };
    fails_without(move |kind, _, before| kind == OpKind::SyncDir && dropped(before));
}
