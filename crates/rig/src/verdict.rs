//! Targets, and whether they are held.
//!
//! A target is a bound on one figure. It is held or missed on the median; a figure that could not be
//! measured (every round void) is a miss, because a target that nobody can check is not held. A smoke run
//! judges nothing: its figures come from debug binaries and short windows.

use crate::figures::Spread;
use serde::Serialize;

/// On which side of the number a figure must lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The figure must not be larger.
    AtMost(f64),
    /// The figure must not be smaller.
    AtLeast(f64),
}

impl Bound {
    fn admits(self, value: f64) -> bool {
        match self {
            Bound::AtMost(bound) => value <= bound,
            Bound::AtLeast(bound) => value >= bound,
        }
    }
}

/// How a target came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The median is within the bound.
    Held,
    /// The median is outside the bound, or there is none.
    Missed,
    /// This run does not judge.
    NotJudged,
}

/// One target with its measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Target {
    /// Which figure of which cell.
    pub name: String,
    /// The bound.
    pub bound: Bound,
    /// The better bound that we work towards.
    pub goal: Option<f64>,
    /// What was measured.
    pub measured: Option<Spread>,
    /// How it came out.
    pub verdict: Verdict,
    /// Whether the goal is reached too.
    pub goal_reached: bool,
}

impl Target {
    /// Judges a measurement, unless this run does not judge.
    pub(crate) fn judge(
        name: &str,
        bound: Bound,
        goal: Option<f64>,
        measured: Option<Spread>,
        judging: bool,
    ) -> Target {
        let within = |bound: Bound| measured.is_some_and(|spread| bound.admits(spread.median));
        let verdict = match (judging, within(bound)) {
            (false, _) => Verdict::NotJudged,
            (true, true) => Verdict::Held,
            (true, false) => Verdict::Missed,
        };
        let goal_bound = goal.map(|goal| match bound {
            Bound::AtMost(_) => Bound::AtMost(goal),
            Bound::AtLeast(_) => Bound::AtLeast(goal),
        });
        let goal_reached = judging && goal_bound.is_some_and(within);
        Target { name: name.to_owned(), bound, goal, measured, verdict, goal_reached }
    }
}

/// No target is missed.
pub(crate) fn all_held(targets: &[Target]) -> bool {
    targets.iter().all(|target| target.verdict != Verdict::Missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(bound: Bound, goal: Option<f64>, value: Option<f64>) -> (Verdict, bool) {
        let target = Target::judge("x", bound, goal, value.map(Spread::once), true);
        (target.verdict, target.goal_reached)
    }

    #[test]
    fn a_median_on_the_bound_holds() {
        let table = [
            (Bound::AtMost(4.0), Some(2.5), Some(4.0), (Verdict::Held, false)),
            (Bound::AtMost(4.0), Some(2.5), Some(2.5), (Verdict::Held, true)),
            (Bound::AtMost(4.0), Some(2.5), Some(4.01), (Verdict::Missed, false)),
            (Bound::AtLeast(0.5), None, Some(0.5), (Verdict::Held, false)),
            (Bound::AtLeast(0.5), None, Some(0.49), (Verdict::Missed, false)),
            (Bound::AtLeast(0.5), Some(0.9), Some(0.95), (Verdict::Held, true)),
        ];
        for (bound, goal, value, expected) in table {
            assert_eq!(judged(bound, goal, value), expected, "{bound:?} {value:?}");
        }
    }

    #[test]
    fn a_figure_that_was_not_measured_is_a_miss() {
        assert_eq!(judged(Bound::AtMost(4.0), Some(2.0), None), (Verdict::Missed, false));
    }

    #[test]
    fn the_median_decides_and_not_the_range() {
        let spread = Spread { median: 3.9, min: 1.0, max: 9.0, rounds: 5 };
        assert_eq!(Target::judge("x", Bound::AtMost(4.0), None, Some(spread), true).verdict, Verdict::Held);
    }

    #[test]
    fn a_smoke_run_judges_nothing_and_fails_nothing() {
        let missed = Target::judge("x", Bound::AtMost(4.0), Some(2.0), Some(Spread::once(9.0)), true);
        let smoke = Target::judge("x", Bound::AtMost(4.0), Some(2.0), Some(Spread::once(1.0)), false);
        assert_eq!((smoke.verdict, smoke.goal_reached), (Verdict::NotJudged, false));
        assert!(all_held(std::slice::from_ref(&smoke)));
        assert!(!all_held(&[smoke, missed]));
        assert!(all_held(&[]));
    }
}
