//! The committer's place in the scheduler's queue.
//!
//! On a busy machine a thread that the disk wakes waits for the running thread's slice, so the scheduler's
//! tick, not the disk, decides how long a flush takes: 4 ms where the disk needs 0.4. The committer uses next
//! to no processor time, so it asks to go first: a higher priority where the process may ask for that, else a
//! short slice, which needs no permission (Linux 6.12 and later) and has it preempt threads with longer ones.
//! Neither is needed for correctness; where neither is granted nothing changes.

#![allow(unsafe_code)] // two system calls that no safe wrapper in the dependency graph offers

use std::mem::size_of;

/// Nicer than nobody: well above ordinary threads, below what an administrator would set by hand.
const NICE: i32 = -10;
/// The shortest slice that Linux grants.
const SLICE_NANOS: u64 = 100_000;

/// Asks that this thread runs soon after it wakes.
pub(crate) fn favour_this_thread() {
    // SAFETY: reads a number about the calling thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    if !ask(NICE.min(nice)) {
        ask(nice);
    }
}

fn ask(nice: i32) -> bool {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: SLICE_NANOS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads `size` bytes from a struct that lives until the call returns; 0 names the
    // calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_again_for_what_one_has_is_always_granted() {
        std::thread::spawn(|| {
            // SAFETY: as above.
            let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
            assert!(ask(nice));
            favour_this_thread();
        })
        .join()
        .unwrap();
    }
}
