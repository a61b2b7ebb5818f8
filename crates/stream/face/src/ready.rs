//! Which of many sleepers has been woken: wakers that say who they are.
//!
//! A connection has one task and may have thousands of subscriptions. Were each polled with the task's own
//! waker, one event would mean looking at all of them. Here every member has a waker of its own that notes
//! its number in a shared list and wakes the task once; the task takes the numbers from the list and polls
//! those members alone. A member that is noted already is not noted again, so the list is bounded by the
//! number of members. A member costs one allocation, and no task or timer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use parking_lot::Mutex;

/// The list of members that have been woken.
#[derive(Debug, Default)]
pub(crate) struct Ready(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    woken: VecDeque<u32>,
    /// The task, while it waits.
    task: Option<Waker>,
}

/// One member's waker.
#[derive(Debug)]
struct Member {
    number: u32,
    is_noted: AtomicBool,
    shared: Arc<Shared>,
}

/// A member's place on the list.
#[derive(Debug)]
pub(crate) struct Seat {
    member: Arc<Member>,
    waker: Waker,
}

impl Seat {
    /// What to poll the member with.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Puts the member on the list, as if it had been woken.
    pub(crate) fn wake(&self) {
        self.member.note();
    }
}

impl Ready {
    /// A seat for a new member, who is on the list from the start.
    pub(crate) fn seat(&self, number: u32) -> Seat {
        let member =
            Arc::new(Member { number, is_noted: AtomicBool::new(false), shared: Arc::clone(&self.0) });
        member.note();
        Seat { waker: Waker::from(Arc::clone(&member)), member }
    }

    /// The next member that was woken. Before polling it, its seat has to be [taken](Seat::taken).
    pub(crate) fn next(&self) -> Option<u32> {
        self.0.state.lock().woken.pop_front()
    }

    /// Registers the task to be woken with the next member; answers whether one is on the list already.
    pub(crate) fn wait(&self, task: &Waker) -> bool {
        let mut state = self.0.state.lock();
        if state.task.as_ref().is_none_or(|known| !known.will_wake(task)) {
            state.task = Some(task.clone());
        }
        !state.woken.is_empty()
    }
}

impl Seat {
    /// From now on the member can be noted again.
    pub(crate) fn taken(&self) {
        self.member.is_noted.store(false, Ordering::Release);
    }
}

impl Member {
    fn note(&self) {
        if self.is_noted.swap(true, Ordering::AcqRel) {
            return;
        }
        let task = {
            let mut state = self.shared.state.lock();
            state.woken.push_back(self.number);
            state.task.take()
        };
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Wake for Member {
    fn wake(self: Arc<Self>) {
        self.note();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.note();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn members_are_listed_once_and_wake_the_task_once() {
        let (ready, count) = (Ready::default(), Arc::new(Count::default()));
        let task = Waker::from(Arc::clone(&count));
        let seats: Vec<_> = (0..3).map(|number| ready.seat(number)).collect();
        for (number, seat) in seats.iter().enumerate() {
            assert_eq!(ready.next(), u32::try_from(number).ok());
            seat.taken();
        }
        assert!(!ready.wait(&task));
        seats[2].waker().wake_by_ref();
        seats[2].waker().wake_by_ref();
        seats[0].waker().wake_by_ref();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(ready.wait(&task));
        assert_eq!((ready.next(), ready.next(), ready.next()), (Some(2), Some(0), None));
    }

    #[test]
    fn a_member_woken_while_it_is_polled_is_listed_again() {
        let ready = Ready::default();
        let seat = ready.seat(7);
        assert_eq!(ready.next(), Some(7));
        seat.taken();
        seat.wake();
        assert_eq!(ready.next(), Some(7));
    }
}
