//! Values of any kind for tests: what the macros make of each message beside its encoding.

use bytes::Bytes;

use super::reply::{Batch, Pulled};
use super::request::{Publish, Token};
use super::{Capabilities, Code, Delivery, Expect, Refusal, Start, Ttl};
use crate::names::{CacheName, GroupName, StreamName, Tenant};
use crate::spec::{CacheSpec, Durability, StreamKind, StreamSpec};

/// Choices that follow from a seed (splitmix64).
pub(crate) struct Source(pub(crate) u64);

impl Source {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// A value that can be encoded, and is the same when it is read.
pub(crate) trait Sample {
    fn sample(source: &mut Source) -> Self;
}

macro_rules! number {
    ($($type:ty)*) => { $(
        impl Sample for $type {
            fn sample(source: &mut Source) -> Self {
                // Of any size.
                let shift = source.below(64) as u32;
                (source.next() >> shift) as Self
            }
        }
    )* };
}

number!(u8 u16 u32 u64 i16 i32 i64);

macro_rules! picked {
    ($($type:ty: $from:expr,)*) => { $(
        impl Sample for $type {
            fn sample(source: &mut Source) -> Self {
                let text = source.pick(&$from);
                Self::new(text).unwrap()
            }
        }
    )* };
}

picked! {
    Tenant: ["default", "town-hall", "a_1"],
    StreamName: ["orders", "demo.readings", "a.b.c", "_trifid.offsets"],
    CacheName: ["sessions", "demo.state"],
    GroupName: ["g", "console-consumer-1", "größe mit Leerzeichen"],
}

impl Sample for bool {
    fn sample(source: &mut Source) -> Self {
        source.below(2) == 1
    }
}

impl Sample for String {
    fn sample(source: &mut Source) -> Self {
        let text = *source.pick(&["", "x", "größe", "a longer text with spaces"]);
        text.to_owned()
    }
}

impl Sample for Token {
    fn sample(source: &mut Source) -> Self {
        Self(Sample::sample(source))
    }
}

impl Sample for Bytes {
    fn sample(source: &mut Source) -> Self {
        let len = source.below(20);
        (0..len).map(|_| source.next() as u8).collect()
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(source: &mut Source) -> Self {
        bool::sample(source).then(|| T::sample(source))
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(source: &mut Source) -> Self {
        let len = source.below(4);
        (0..len).map(|_| T::sample(source)).collect()
    }
}

impl Sample for Capabilities {
    fn sample(source: &mut Source) -> Self {
        Self(Sample::sample(source))
    }
}

impl Sample for Ttl {
    fn sample(source: &mut Source) -> Self {
        let ms = Sample::sample(source);
        *source.pick(&[Self::Default, Self::Forever, Self::Ms(ms)])
    }
}

impl Sample for Expect {
    fn sample(source: &mut Source) -> Self {
        let revision = Sample::sample(source);
        *source.pick(&[Self::Any, Self::Absent, Self::Revision(revision)])
    }
}

impl Sample for Start {
    fn sample(source: &mut Source) -> Self {
        let (offset, ms) = (Sample::sample(source), Sample::sample(source));
        *source.pick(&[Self::Earliest, Self::Latest, Self::Offset(offset), Self::Time(ms)])
    }
}

impl Sample for Durability {
    fn sample(source: &mut Source) -> Self {
        *source.pick(&[Self::Memory, Self::Periodic { interval_ms: 10 }, Self::PERIODIC, Self::OnCommit])
    }
}

impl Sample for StreamSpec {
    fn sample(source: &mut Source) -> Self {
        let durability = Sample::sample(source);
        Self {
            shards: *source.pick(&[1, 12, 1024]),
            durability,
            retention_ms: *source.pick(&[None, Some(86_400_000)]),
            retention_bytes: *source.pick(&[None, Some(1 << 40)]),
            compact: durability != Durability::Memory && bool::sample(source),
            max_batch_bytes: *source.pick(&[1024, 1 << 20]),
            kind: *source.pick(&[StreamKind::Events, StreamKind::DeadLetter, StreamKind::Internal]),
        }
    }
}

impl Sample for CacheSpec {
    fn sample(source: &mut Source) -> Self {
        Self {
            durability: Sample::sample(source),
            budget_bytes: *source.pick(&[1 << 16, 1 << 40]),
            default_ttl_ms: *source.pick(&[None, Some(1), Some(60_000)]),
        }
    }
}

impl Sample for Refusal {
    fn sample(source: &mut Source) -> Self {
        let (number, _) = *source.pick(Code::NUMBERS);
        let number = *source.pick(&[number, 999]);
        Self {
            code: Code::from_wire(number, Sample::sample(source)),
            retry_after_ms: Sample::sample(source),
            message: Sample::sample(source),
        }
    }
}

impl Sample for Publish {
    fn sample(source: &mut Source) -> Self {
        Self {
            handle: Sample::sample(source),
            shard: Sample::sample(source),
            epoch: Sample::sample(source),
            ack: Sample::sample(source),
            batches: Sample::sample(source),
        }
    }
}

impl Sample for Batch {
    fn sample(source: &mut Source) -> Self {
        Self {
            shard: Sample::sample(source),
            epoch: Sample::sample(source),
            base_offset: Sample::sample(source),
            batches: Sample::sample(source),
        }
    }
}

impl Sample for Delivery {
    fn sample(source: &mut Source) -> Self {
        Self { range: Sample::sample(source), attempt: Sample::sample(source), batch: Sample::sample(source) }
    }
}

impl Sample for Pulled {
    fn sample(source: &mut Source) -> Self {
        Self { deliveries: Sample::sample(source) }
    }
}
