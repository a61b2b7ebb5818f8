//! Which core runs what.
//!
//! A child inherits the cores of the thread that starts it. So a thread that moves to a core, starts the
//! server and moves back has placed the server before its first instruction, without code between fork and
//! exec.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// The cores that this process may use, ascending.
pub(crate) fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect())
}

/// Runs `work` with the calling thread on one core, then puts the thread back where it was.
pub(crate) fn on<T>(core: Option<usize>, work: impl FnOnce() -> T) -> io::Result<T> {
    let Some(core) = core else { return Ok(work()) };
    let before = sched_getaffinity(None)?;
    sched_setaffinity(None, &single(core))?;
    let result = work();
    sched_setaffinity(None, &before)?;
    Ok(result)
}

fn single(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

/// The cores of a pinned run: the last one serves, the first one drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Cores {
    /// The core of every server.
    pub server: usize,
    /// The core of the generator.
    pub generator: usize,
}

impl Cores {
    /// Two different cores of those allowed, if there are two.
    pub(crate) fn choose(allowed: &[usize]) -> Option<Cores> {
        let (generator, server) = (*allowed.first()?, *allowed.last()?);
        (generator != server).then_some(Cores { server, generator })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cores_or_none() {
        assert_eq!(Cores::choose(&[]), None);
        assert_eq!(Cores::choose(&[3]), None);
        assert_eq!(Cores::choose(&[0, 1]), Some(Cores { server: 1, generator: 0 }));
        assert_eq!(Cores::choose(&[2, 4, 9]), Some(Cores { server: 9, generator: 2 }));
    }

    #[test]
    fn work_runs_on_the_core_and_the_thread_returns() {
        let before = allowed().unwrap();
        let core = *before.last().unwrap();
        let inside = on(Some(core), || allowed().unwrap()).unwrap();
        assert_eq!(inside, [core]);
        assert_eq!(allowed().unwrap(), before);
        assert_eq!(on(None, || allowed().unwrap()).unwrap(), before);
    }
}
