//! Where chance comes from.
//!
//! Identifiers, jitter and sampling take their randomness as an argument for the same reason that they take
//! time as one: a seed replays a test. None of this is fit for secrets; those come from the TLS provider's
//! generator, in `base/web`.

use std::sync::{Arc, Mutex, PoisonError};

/// A source of random bits.
pub trait Entropy: Send + Sync {
    /// Sixty-four random bits.
    fn next_u64(&self) -> u64;

    /// Fills `out` with random bytes.
    fn fill(&self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

impl<E: Entropy + ?Sized> Entropy for Arc<E> {
    fn next_u64(&self) -> u64 {
        (**self).next_u64()
    }
}

/// A generator per thread, seeded by the standard library's per-process random state.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn next_u64(&self) -> u64 {
        fastrand::u64(..)
    }
}

/// The same bits for the same seed.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<fastrand::Rng>);

impl SeededEntropy {
    /// Starts the sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }
}

impl Entropy for SeededEntropy {
    fn next_u64(&self) -> u64 {
        // The generator is whole at every instant: a panic elsewhere cannot have left it half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).u64(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays() {
        let (one, two, other) = (SeededEntropy::new(7), SeededEntropy::new(7), SeededEntropy::new(8));
        let sequence = |entropy: &SeededEntropy| (0..4).map(|_| entropy.next_u64()).collect::<Vec<_>>();
        let first = sequence(&one);
        assert_eq!(first, sequence(&two));
        assert_ne!(first, sequence(&other));
    }

    #[test]
    fn fill_reaches_the_last_byte() {
        let mut bytes = [0u8; 19];
        SeededEntropy::new(1).fill(&mut bytes);
        assert!(bytes[16..].iter().any(|byte| *byte != 0));
        assert_ne!(bytes[..8], bytes[8..16]);
    }
}
