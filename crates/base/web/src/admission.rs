//! Fair admission: a core that is full keeps serving those who have less than their share.
//!
//! Requests in flight are what a single-threaded core can run out of, so each core keeps its own count and
//! its own limit (the configured one divided by the cores) and shares nothing with the others. Below the
//! limit everybody is admitted. At the limit the core divides it among the tenants that have requests in
//! flight, by weight, and admits only a tenant that has less than its share; everybody else is refused at
//! once. Nothing waits in line, so there is no queue to bound.
//!
//! A tenant under its share may therefore push the core past its limit; the tenant over its share gives the
//! room back as its requests end, and gets none of it again. Twice the limit is never exceeded.
//!
//! A core that answers without waiting has one request in flight at a time, however many connections press: there the
//! kernel's queues are what is shared, connection by connection, and nothing is refused. Admission bites where requests
//! wait: for the disk, for bodies, for other servers, for the compute pool.
//!
//! The uncontended path is a map lookup of the tenant's name (none for the default tenant) and two counters
//! that only this core writes. The names tracked are bounded: a name is forgotten when the table is full and
//! it has nothing in flight, and when even that does not help, tenants share one overflow slot.

use std::collections::HashMap;
use std::sync::Arc;

use crate::limits::{TENANT_BYTES_MAX, TENANTS_TRACKED_MAX};

/// The weight of each named tenant; every other one has weight 1.
pub(crate) type Weights = HashMap<String, u32>;

/// The tenant has its share and the core is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Saturated;

/// A place that an admitted request holds until it is [released](Admission::release).
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a place that is not released is lost"]
pub(crate) struct Place(usize);

#[derive(Debug)]
struct Slot {
    tenant: Box<str>,
    in_flight: u32,
    weight: u32,
}

/// The slot of the default tenant.
const DEFAULT: usize = 0;
/// The slot that tenants share when the table is full of busy ones.
const OVERFLOW: usize = 1;

/// One core's books.
#[derive(Debug)]
pub(crate) struct Admission {
    limit: u32,
    in_flight: u32,
    /// The sum of the weights of the tenants that have something in flight.
    busy_weight: u64,
    slots: Vec<Slot>,
    by_tenant: HashMap<Box<str>, usize>,
    weights: Arc<Weights>,
}

impl Admission {
    /// Books with a limit of requests in flight (at least one).
    pub(crate) fn new(limit: usize, weights: Arc<Weights>) -> Self {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX / 2).clamp(1, u32::MAX / 2);
        let slot = |weight| Slot { tenant: Box::default(), in_flight: 0, weight };
        let default = weights.get("").copied().unwrap_or(1).max(1);
        Self {
            limit,
            in_flight: 0,
            busy_weight: 0,
            slots: vec![slot(default), slot(1)],
            by_tenant: HashMap::new(),
            weights,
        }
    }

    /// Admits a request of `tenant`, or refuses it at once.
    pub(crate) fn admit(&mut self, tenant: &str) -> Result<Place, Saturated> {
        let at = self.slot_of(tenant);
        if self.in_flight >= self.limit && !self.under_share(at) {
            return Err(Saturated);
        }
        let slot = &mut self.slots[at];
        if slot.in_flight == 0 {
            self.busy_weight += u64::from(slot.weight);
        }
        slot.in_flight += 1;
        self.in_flight += 1;
        Ok(Place(at))
    }

    /// Gives a place back, which is why it is taken by value.
    #[allow(clippy::needless_pass_by_value)]
    pub(crate) fn release(&mut self, place: Place) {
        let slot = &mut self.slots[place.0];
        slot.in_flight -= 1;
        if slot.in_flight == 0 {
            self.busy_weight -= u64::from(slot.weight);
        }
        self.in_flight -= 1;
    }

    /// Requests in flight.
    #[cfg(test)]
    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether a tenant has less than its share of a full core. A share is at least one place.
    fn under_share(&self, at: usize) -> bool {
        let slot = &self.slots[at];
        let others = self.busy_weight - if slot.in_flight == 0 { 0 } else { u64::from(slot.weight) };
        let weight = u64::from(slot.weight);
        let share = (u64::from(self.limit) * weight / (others + weight)).max(1);
        u64::from(slot.in_flight) < share && self.in_flight < 2 * self.limit
    }

    fn slot_of(&mut self, tenant: &str) -> usize {
        if tenant.is_empty() {
            return DEFAULT;
        }
        match self.by_tenant.get(tenant) {
            Some(at) => *at,
            None => self.track(tenant),
        }
    }

    /// Finds a slot for a name that has none: a new one, that of an idle tenant, or the overflow slot.
    fn track(&mut self, tenant: &str) -> usize {
        if tenant.len() > TENANT_BYTES_MAX {
            return OVERFLOW;
        }
        let weight = self.weights.get(tenant).copied().unwrap_or(1).max(1);
        let slot = Slot { tenant: tenant.into(), in_flight: 0, weight };
        let at = if self.slots.len() < TENANTS_TRACKED_MAX {
            self.slots.push(slot);
            self.slots.len() - 1
        } else {
            let idle = self.slots.iter().skip(OVERFLOW + 1).position(|slot| slot.in_flight == 0);
            let Some(at) = idle.map(|at| at + OVERFLOW + 1) else { return OVERFLOW };
            self.by_tenant.remove(&self.slots[at].tenant);
            self.slots[at] = slot;
            at
        };
        self.by_tenant.insert(tenant.into(), at);
        at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn admission(limit: usize, weights: &[(&str, u32)]) -> Admission {
        let weights = weights.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect();
        Admission::new(limit, Arc::new(weights))
    }

    /// Admits until refused.
    fn flood(admission: &mut Admission, tenant: &str) -> Vec<Place> {
        std::iter::from_fn(|| admission.admit(tenant).ok()).collect()
    }

    #[test]
    fn alone_a_tenant_has_the_whole_core() {
        let mut admission = admission(8, &[]);
        assert_eq!(flood(&mut admission, "noisy").len(), 8);
    }

    #[test]
    fn a_noisy_neighbour_leaves_the_other_its_share() {
        let mut admission = admission(8, &[]);
        let mut noisy = flood(&mut admission, "noisy");
        let mut quiet = flood(&mut admission, "quiet");
        assert_eq!(quiet.len(), 4, "half of the core");
        // Each place that the noisy tenant gives back stays empty for it until the core is below its limit.
        while admission.in_flight() > 8 {
            admission.release(noisy.pop().unwrap());
            assert_eq!(admission.admit("noisy").is_ok(), admission.in_flight() < 8);
        }
        assert_eq!((noisy.len(), quiet.len()), (4, 4));
        // However hard the noisy one tries, what the quiet one gives back is the quiet one's to take again.
        for _ in 0..100 {
            admission.release(quiet.pop().unwrap());
            let gained = flood(&mut admission, "noisy");
            quiet.push(admission.admit("quiet").expect("under its share"));
            for place in gained {
                admission.release(place);
            }
        }
    }

    #[test]
    fn shares_follow_weights() {
        let mut admission = admission(12, &[("gold", 3), ("", 2)]);
        let _default = flood(&mut admission, "");
        assert_eq!(flood(&mut admission, "gold").len(), 7, "three fifths of twelve, rounded down");
        assert_eq!(flood(&mut admission, "iron").len(), 2, "one sixth");
    }

    #[test]
    fn everybody_has_at_least_one_place_up_to_twice_the_limit() {
        let mut admission = admission(4, &[]);
        let _noisy = flood(&mut admission, "noisy");
        let admitted = (0..100).filter(|n| admission.admit(&n.to_string()).is_ok()).count();
        assert_eq!((admitted, admission.in_flight()), (4, 8));
    }

    #[test]
    fn the_names_tracked_are_bounded() {
        let mut admission = admission(TENANTS_TRACKED_MAX * 4, &[]);
        let busy: Vec<_> =
            (0..TENANTS_TRACKED_MAX).map(|n| admission.admit(&format!("b{n}")).unwrap()).collect();
        assert_eq!(admission.slots.len(), TENANTS_TRACKED_MAX);
        assert!(busy.contains(&Place(OVERFLOW)));
        for place in busy {
            admission.release(place);
        }
        for n in 0..3 * TENANTS_TRACKED_MAX {
            let place = admission.admit(&format!("c{n}")).unwrap();
            assert_ne!(place, Place(OVERFLOW));
            admission.release(place);
        }
        assert_eq!(admission.by_tenant.len(), TENANTS_TRACKED_MAX - 2);
        assert_eq!(admission.admit(&"x".repeat(TENANT_BYTES_MAX + 1)), Ok(Place(OVERFLOW)));
    }

    proptest! {
        #[test]
        fn the_books_balance_and_nobody_under_its_share_is_refused(
            limit in 1usize..20,
            steps in proptest::collection::vec((0usize..5, any::<bool>()), 0..200),
        ) {
            let mut admission = admission(limit, &[("t1", 2), ("t2", 5)]);
            let mut held: Vec<Vec<Place>> = (0..5).map(|_| Vec::new()).collect();
            for (tenant, enter) in steps {
                let name = if tenant == 0 { String::new() } else { format!("t{tenant}") };
                if !enter {
                    if let Some(place) = held[tenant].pop() {
                        admission.release(place);
                    }
                } else if let Ok(place) = admission.admit(&name) {
                    held[tenant].push(place);
                } else {
                    prop_assert!(!held[tenant].is_empty() || admission.in_flight() as usize >= 2 * limit);
                }
                let total: usize = held.iter().map(Vec::len).sum();
                prop_assert_eq!(admission.in_flight() as usize, total);
                prop_assert!(total <= 2 * limit);
            }
            for place in held.into_iter().flatten() {
                admission.release(place);
            }
            prop_assert_eq!((admission.in_flight(), admission.busy_weight), (0, 0));
        }
    }
}
