use proptest::prelude::*;

use super::*;

const MAX: u16 = 3;

/// One offset, as a person would keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plain {
    attempt: u16,
    state: State,
}

/// The same rules, offset by offset.
#[derive(Default)]
struct Oracle {
    offsets: Vec<Plain>,
}

impl Oracle {
    fn each(&mut self, first: u64, end: u64, mut act: impl FnMut(&mut Plain)) {
        let len = self.offsets.len() as u64;
        let (first, end) = (first.min(len) as usize, end.min(len) as usize);
        self.offsets[first..end.max(first)].iter_mut().for_each(&mut act);
    }

    fn failed(plain: &mut Plain, due: u64, reason: Reason) {
        let is_dead = plain.attempt >= MAX;
        plain.state = if is_dead { State::Dead { reason } } else { State::Waiting { due } };
    }

    fn base(&self) -> u64 {
        self.offsets.iter().take_while(|plain| plain.state == State::Done).count() as u64
    }
}

#[derive(Clone, Debug)]
enum Step {
    Lease { member: u64, len: u64, until: u64 },
    Again { member: u64, max: u64, until: u64 },
    Skip { len: u64 },
    Ack { member: u64, first: u64, len: u64 },
    Nack { member: u64, first: u64, len: u64, delay: u64 },
    Extend { member: u64, first: u64, len: u64, until: u64 },
    Release { member: u64, lost: bool },
    Pass { ms: u64 },
    SetAside { max: usize, arrives: bool },
    Lose { before: u64 },
    Vanish { first: u64, len: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (member, offset, len, time) = (1_u64..4, 0_u64..60, 0_u64..12, 1_u64..40);
    let span = (member.clone(), offset.clone(), len.clone());
    let step = prop_oneof![
        4 => (member.clone(), 1_u64..12, time.clone())
            .prop_map(|(member, len, until)| Step::Lease { member, len, until }),
        4 => (member.clone(), 1_u64..8, time.clone())
            .prop_map(|(member, max, until)| Step::Again { member, max, until }),
        1 => (1_u64..5).prop_map(|len| Step::Skip { len }),
        4 => span.clone().prop_map(|(member, first, len)| Step::Ack { member, first, len }),
        2 => (span.clone(), 0_u64..20)
            .prop_map(|((member, first, len), delay)| Step::Nack { member, first, len, delay }),
        1 => (span, time.clone())
            .prop_map(|((member, first, len), until)| Step::Extend { member, first, len, until }),
        1 => (member, any::<bool>()).prop_map(|(member, lost)| Step::Release { member, lost }),
        3 => (0_u64..15).prop_map(|ms| Step::Pass { ms }),
        1 => (1_usize..4, any::<bool>()).prop_map(|(max, arrives)| Step::SetAside { max, arrives }),
        1 => offset.clone().prop_map(|before| Step::Lose { before }),
        1 => (offset, len).prop_map(|(first, len)| Step::Vanish { first, len }),
    ];
    prop::collection::vec(step, 1..60)
}

struct Both {
    window: Window,
    oracle: Oracle,
    now: u64,
}

impl Both {
    fn take(&mut self, step: &Step) {
        let now = self.now;
        match *step {
            Step::Lease { member, len, until } => {
                let state = State::Leased { member, until: now + until };
                self.window.lease_new(self.window.next() + len, member, now + until);
                self.oracle.offsets.extend((0..len).map(|_| Plain { attempt: 1, state }));
            }
            Step::Again { member, max, until } => {
                let Some((start, range)) = self.window.due(now) else {
                    let due = |plain: &Plain| matches!(plain.state, State::Waiting { due } if due <= now);
                    assert!(!self.oracle.offsets.iter().any(due), "what is due is found");
                    return;
                };
                let taker = Taker { member, until: now + until, now };
                let (end, attempt) = self.window.lease_again(start, start + max, taker).unwrap();
                assert!(end == start + max || end >= range.end);
                self.oracle.each(start, end, |plain| {
                    assert!(matches!(plain.state, State::Waiting { due } if due <= now));
                    plain.attempt += 1;
                    assert_eq!(plain.attempt, attempt);
                    plain.state = State::Leased { member, until: now + until };
                });
            }
            Step::Skip { len } => {
                self.window.skip_to(self.window.next() + len);
                let done = Plain { attempt: 0, state: State::Done };
                self.oracle.offsets.extend((0..len).map(|_| done));
            }
            Step::Ack { member, first, len } => {
                let count = self.window.ack(member, first, first + len);
                self.settle(member, first, len, count, |plain| plain.state = State::Done);
            }
            Step::Nack { member, first, len, delay } => {
                let count = self.window.nack(member, first, first + len, now + delay);
                self.settle(member, first, len, count, |plain| {
                    Oracle::failed(plain, now + delay, Reason::Refused);
                });
            }
            Step::Extend { member, first, len, until } => {
                let count = self.window.extend(member, first, first + len, now + until);
                let state = State::Leased { member, until: now + until };
                self.settle(member, first, len, count, |plain| plain.state = state);
            }
            Step::Release { member, lost } => self.release(member, lost),
            Step::Pass { ms } => {
                self.now += ms;
                let now = self.now;
                let ended = self.window.expire(now, now + 1, usize::MAX);
                let mut count = 0;
                self.oracle.each(0, u64::MAX, |plain| {
                    if matches!(plain.state, State::Leased { until, .. } if until <= now) {
                        count += 1;
                        Oracle::failed(plain, now + 1, Reason::Timeout);
                    }
                });
                assert_eq!(ended.iter().map(|(_, records)| records).sum::<u64>(), count);
            }
            Step::SetAside { max, arrives } => {
                for (start, range) in self.window.take_dead(max) {
                    let State::Dead { reason } = range.state else { panic!("{range:?} is not dead") };
                    self.window.left(start, range.end, (!arrives).then_some(reason));
                    self.oracle.each(start, range.end, |plain| {
                        assert_eq!(plain.state, State::Dead { reason });
                        plain.state = if arrives { State::Done } else { plain.state };
                    });
                }
            }
            Step::Lose { before } => {
                let before = before.min(self.window.next() + 5);
                let mut lost = before.saturating_sub(self.window.next());
                self.oracle.each(0, before, |plain| {
                    if matches!(plain.state, State::Waiting { .. } | State::Dead { .. }) {
                        lost += 1;
                        plain.state = State::Done;
                    }
                });
                while (self.oracle.offsets.len() as u64) < before {
                    self.oracle.offsets.push(Plain { attempt: 0, state: State::Done });
                }
                assert_eq!(self.window.lose_before(before), lost);
            }
            Step::Vanish { first, len } => {
                self.window.vanish(first, first + len);
                self.oracle.each(first, first + len, |plain| {
                    if matches!(plain.state, State::Waiting { .. }) {
                        plain.state = State::Done;
                    }
                });
            }
        }
    }

    fn settle(&mut self, member: u64, first: u64, len: u64, count: Count, act: impl Fn(&mut Plain)) {
        let mut settled = 0;
        self.oracle.each(first, first + len, |plain| {
            if matches!(plain.state, State::Leased { member: holder, .. } if holder == member) {
                settled += 1;
                act(plain);
            }
        });
        assert_eq!(count, Count { settled, unknown: len - settled });
    }

    fn release(&mut self, member: u64, lost: bool) {
        let (now, mut held) = (self.now, 0);
        let count = self.window.release(member, now, lost);
        self.oracle.each(0, u64::MAX, |plain| {
            if !matches!(plain.state, State::Leased { member: holder, .. } if holder == member) {
                return;
            }
            held += 1;
            if lost {
                Oracle::failed(plain, now, Reason::MemberLost);
            } else {
                *plain = Plain { attempt: plain.attempt - 1, state: State::Waiting { due: now } };
            }
        });
        assert_eq!(count, held);
    }

    fn compare(&self) {
        self.window.check();
        assert_eq!(self.window.base(), self.oracle.base(), "the committed offset");
        assert_eq!(self.window.next(), self.oracle.offsets.len() as u64);
        for (start, range) in self.window.ranges() {
            for offset in start..range.end {
                let plain = self.oracle.offsets[offset as usize];
                assert_eq!(plain.state, range.state, "offset {offset}");
                assert!(range.state == State::Done || plain.attempt == range.attempt, "offset {offset}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever happens, in whatever order: each offset is in the state that a plain table has it in, and the
    /// committed offset never passes one that is not done.
    #[test]
    fn a_window_is_a_table_of_offsets(steps in steps()) {
        let mut both = Both { window: Window::new(0, MAX), oracle: Oracle::default(), now: 0 };
        for step in &steps {
            both.take(step);
            both.compare();
        }
        // In the end everything can be done.
        both.window.expire(u64::MAX, 0, usize::MAX);
        while let Some((start, range)) = both.window.due(u64::MAX - 1) {
            let taker = Taker { member: 9, until: u64::MAX, now: u64::MAX - 1 };
            let (end, _) = both.window.lease_again(start, range.end, taker).unwrap();
            both.window.ack(9, start, end);
        }
        for (start, range) in both.window.take_dead(usize::MAX) {
            both.window.left(start, range.end, None);
        }
        prop_assert!(both.window.is_clean());
        prop_assert_eq!(both.window.base(), both.window.next());
    }
}

#[test]
fn ranges_are_bounded_whatever_a_member_acknowledges() {
    let mut window = Window::new(0, 0);
    while window.room() > 0 {
        let start = window.next();
        window.lease_new(start + window.room().min(1000), 1, 10);
    }
    assert_eq!(window.next(), WINDOW_OFFSETS_MAX);
    let mut settled = 0;
    for offset in (1..WINDOW_OFFSETS_MAX).step_by(2) {
        settled += window.ack(1, offset, offset + 1).settled;
    }
    assert!(window.ranges().len() <= 2 * WINDOW_RANGES_MAX + 2, "{}", window.ranges().len());
    assert!(settled >= WINDOW_RANGES_MAX as u64 / 2);
    // What could not be told apart is still held, and a whole range settles it.
    assert_eq!(window.ack(1, 0, WINDOW_OFFSETS_MAX).settled, WINDOW_OFFSETS_MAX - settled);
    assert!(window.is_clean());
}

#[test]
fn without_a_limit_a_record_is_delivered_for_ever() {
    let mut window = Window::new(5, 0);
    window.lease_new(6, 1, 0);
    for round in 1..1000 {
        window.expire(round, round, 10);
        let taker = Taker { member: 1, until: round, now: round };
        assert_eq!(window.lease_again(5, 6, taker), Some((6, 1 + round as u16)));
    }
    assert!(!window.has_dead());
}
