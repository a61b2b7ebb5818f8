//! A writer that keeps a list of what it was promised, on a disk whose power is cut: the engine of the
//! power-cut tests.
//!
//! Everything follows from a seed, and the committer is moved on by hand, so a failing seed and cut show the
//! same failure again.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use fastrand::Rng;
use trifid_base_log::{CommitError, Position, Ticket};
use trifid_base_sim::SimDisk;

use crate::support::{Stepped, open_from, options};

const ACTIONS: usize = 40;

/// What was promised: kept outside the machine whose power is cut.
#[derive(Default)]
pub(crate) struct Ledger {
    /// What lies at each position, acknowledged or under way; refused payloads are gone.
    payloads: BTreeMap<u64, Vec<u8>>,
    /// Everything below was acknowledged.
    acknowledged: u64,
    /// Everything below may have been dropped.
    floor: u64,
    /// Makes every payload different.
    serial: u64,
}

impl Ledger {
    /// Opens the log and holds it to the ledger.
    fn open(&mut self, disk: &SimDisk, rng: &mut Rng) -> Result<Option<Stepped>, String> {
        let opened = open_from(Arc::new(disk.clone()), options(6_000, rng.u64(..)), self.floor);
        let opened = match opened {
            Ok(opened) => opened,
            Err(_) if disk.is_dead() => return Ok(None),
            Err(error) => return Err(format!("does not open: {error}")),
        };
        self.check(&opened)?;
        Ok(Some(opened))
    }

    fn check(&mut self, opened: &Stepped) -> Result<(), String> {
        let next = opened.recovery.next.get();
        if next < self.acknowledged {
            return Err(format!("ends at {next}, {} were acknowledged", self.acknowledged));
        }
        let mut expected = self.floor;
        for (position, records, payload) in &opened.content.frames {
            if self.payloads.get(position) != Some(payload) {
                return Err(format!("a foreign payload at {position}"));
            }
            self.nothing_between(expected, *position)?;
            expected = position + u64::from(*records);
        }
        self.nothing_between(expected, next)?;
        walk_without_gap(opened)?;
        // What survived unacknowledged stays: the log has called it durable now.
        self.payloads.split_off(&next);
        self.acknowledged = next;
        Ok(())
    }

    /// Positions that were refused hold nothing; all others do.
    fn nothing_between(&self, from: u64, to: u64) -> Result<(), String> {
        match self.payloads.range(from..to.max(from)).next() {
            Some((position, _)) => Err(format!("nothing at {position}")),
            None => Ok(()),
        }
    }

    fn append(&mut self, opened: &Stepped, rng: &mut Rng) -> Option<Ticket> {
        self.serial += 1;
        let len = match rng.u8(..40) {
            0 => rng.usize(32_000..40_000),
            1..8 => 0,
            _ => rng.usize(..1_500),
        };
        let payload: Vec<u8> =
            self.serial.to_le_bytes().into_iter().chain((0..len).map(|_| rng.u8(..))).collect();
        let ticket = opened.log.append_records(&[&payload], rng.u32(1..4)).ok()?;
        self.payloads.insert(ticket.position.get(), payload);
        Some(ticket)
    }

    fn settle(&mut self, opened: &Stepped, tickets: &mut Vec<(Ticket, u64)>) {
        tickets.retain(|(ticket, end)| match ticket.decided() {
            Some(Ok(())) => {
                self.acknowledged = self.acknowledged.max(*end);
                false
            }
            // Told that it is not there: it must not come back. (After another failure it may.)
            Some(Err(CommitError::NoSpace)) => {
                self.payloads.remove(&ticket.position.get());
                false
            }
            Some(Err(_)) | None => true,
        });
        assert!(self.acknowledged <= opened.log.durable_mark().get());
    }

    /// Works until the power is cut or the actions are used up.
    pub(crate) fn work(&mut self, disk: &SimDisk, rng: &mut Rng) -> Result<(), String> {
        let Some(mut opened) = self.open(disk, rng)? else { return Ok(()) };
        let mut tickets = Vec::new();
        for _ in 0..ACTIONS {
            if disk.is_dead() {
                break;
            }
            match rng.u8(..20) {
                0..10 => {
                    let before = opened.log.next_position().get();
                    let ticket = self.append(&opened, rng);
                    let end = opened.log.next_position().get();
                    assert_eq!(ticket.is_some(), end > before);
                    tickets.extend(ticket.map(|ticket| (ticket, end)));
                }
                10..16 => {
                    opened.stepper.step();
                }
                16 => opened.stepper.idle(),
                17 => {
                    let whole_segments = rng.u64(self.floor..=self.acknowledged);
                    self.floor = whole_segments;
                    let _ = opened.log.truncate_front(Position::new(whole_segments));
                }
                18 => disk.set_room(Some(rng.u64(..3_000) + disk.used())),
                _ => disk.set_room(None),
            }
            self.settle(&opened, &mut tickets);
        }
        Ok(())
    }
}

/// Whatever the log still has, also below the floor, hangs together.
fn walk_without_gap(opened: &Stepped) -> Result<(), String> {
    match opened.log.read_from(opened.recovery.first, &mut |_| ControlFlow::Continue(())) {
        Ok(end) if end == opened.recovery.next => Ok(()),
        Ok(end) => Err(format!("the walk ends at {end}")),
        Err(error) => Err(format!("cannot be walked: {error}")),
    }
}

/// One seed: how many operations its work takes.
pub(crate) fn length(seed: u64) -> u64 {
    let disk = SimDisk::new();
    Ledger::default().work(&disk, &mut Rng::with_seed(seed)).unwrap();
    disk.ops()
}

/// One seed and one cut: work until the cut; open with the power cut again while opening; open, work and be
/// cut once more; open.
pub(crate) fn run(seed: u64, cut: u64, prepare: &dyn Fn(&SimDisk)) -> Result<(), String> {
    let mut ledger = Ledger::default();
    let disk = SimDisk::new();
    prepare(&disk);
    disk.cut_at(cut);
    ledger.work(&disk, &mut Rng::with_seed(seed))?;

    let mut rng = Rng::with_seed(seed ^ cut << 32);
    let disk = disk.power_cut(rng.u64(..));
    prepare(&disk);
    disk.cut_at(rng.u64(..16));
    ledger.work(&disk, &mut rng)?;

    let disk = disk.power_cut(rng.u64(..));
    prepare(&disk);
    disk.cut_at(rng.u64(10..60));
    ledger.work(&disk, &mut rng)?;

    let disk = if rng.bool() { disk.power_cut(rng.u64(..)) } else { disk.kill() };
    prepare(&disk);
    ledger.work(&disk, &mut rng)
}
