//! Caches: entries, conditions, lives, watches.

use std::time::Duration;

use trifid_stream_client::{
    CacheChange, CacheOp, CacheResult, CacheSpec, Code, Expect, RequestError, Ttl, Watch, WatchEvent,
};

use crate::harness::over_both;

fn code<T>(answer: Result<T, RequestError>) -> Option<Code> {
    answer.err().and_then(|error| error.code())
}

/// The next change, told as text.
async fn next(watch: &mut Watch) -> String {
    match watch.next().await.unwrap() {
        WatchEvent::Resync => "resync".to_owned(),
        WatchEvent::Change(change) => match change {
            CacheChange::Put { entry } => {
                format!("{}={}", String::from_utf8_lossy(&entry.key), String::from_utf8_lossy(&entry.value))
            }
            CacheChange::Deleted { key, .. } => format!("{} deleted", String::from_utf8_lossy(&key)),
            CacheChange::Expired { key, .. } => format!("{} expired", String::from_utf8_lossy(&key)),
            CacheChange::Evicted { key, .. } => format!("{} evicted", String::from_utf8_lossy(&key)),
            CacheChange::Current { .. } => "current".to_owned(),
        },
    }
}

#[test]
fn entries_are_written_read_and_removed() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        let cache = client.cache("sessions").unwrap();
        assert_eq!(code(cache.get("a").await), Some(Code::UnknownCache));
        client.create_cache("sessions", CacheSpec::default()).await.unwrap();
        client.create_cache("sessions", CacheSpec::default()).await.unwrap();
        assert_eq!(cache.get("a").await.unwrap(), None);
        let first = cache.put("a", "1", Ttl::Default, Expect::Absent).await.unwrap();
        let entry = cache.get("a").await.unwrap().unwrap();
        assert_eq!((&entry.value[..], entry.revision, entry.ttl_ms), (&b"1"[..], first, None));
        let conflict = code(cache.put("a", "2", Ttl::Default, Expect::Absent).await);
        assert_eq!(conflict, Some(Code::Conflict { revision: first }));
        let second = cache.put("a", "2", Ttl::Ms(60_000), Expect::Revision(first)).await.unwrap();
        assert!(second > first);
        let left = cache.get("a").await.unwrap().unwrap().ttl_ms.unwrap();
        assert!((1..=60_000).contains(&left));
        assert!(cache.delete("a", Expect::Any).await.unwrap() > second);
        assert_eq!(cache.delete("a", Expect::Any).await.unwrap(), 0);
        let (caches, more) = client.list_caches("", "", 10).await.unwrap();
        assert_eq!((caches[0].name.as_str(), more), ("sessions", false));
        client.drop_cache("sessions").await.unwrap();
        assert_eq!(code(cache.get("a").await), Some(Code::UnknownCache));
        assert_eq!(code(client.drop_cache("sessions").await), Some(Code::UnknownCache));
    });
}

#[test]
fn several_operations_go_together_and_pages_are_read() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        client.create_cache("many", CacheSpec::default()).await.unwrap();
        let cache = client.cache("many").unwrap();
        let put = |key: &'static str, expect| CacheOp::Put {
            key: key.into(),
            value: "v".into(),
            ttl: Ttl::Forever,
            expect,
        };
        let ops = vec![
            put("k.1", Expect::Any),
            put("k.2", Expect::Any),
            put("k.1", Expect::Absent),
            CacheOp::Get { key: "k.2".into() },
            CacheOp::Get { key: "k.9".into() },
        ];
        let results = cache.batch(ops).await.unwrap();
        assert!(matches!(results[0], CacheResult::Changed { .. }));
        assert!(
            matches!(&results[2], CacheResult::Refused { refusal } if matches!(refusal.code, Code::Conflict { .. }))
        );
        assert!(matches!(&results[3], CacheResult::Found { entry } if entry.key == "k.2"));
        assert_eq!(results[4], CacheResult::Missing);
        let (page, more) = cache.scan("k.", "", 1, true).await.unwrap();
        assert_eq!((page.len(), page[0].value.len()), (1, 0));
        assert!(more);
        let (rest, more) = cache.scan("k.", page[0].key.clone(), 10, false).await.unwrap();
        assert_eq!((rest[0].key.clone(), rest[0].value.clone(), more), ("k.2".into(), "v".into(), false));
    });
}

#[test]
fn a_watch_is_told_what_is_there_and_then_every_change() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        client.create_cache("watched", CacheSpec::default()).await.unwrap();
        let cache = client.cache("watched").unwrap();
        cache.put("a", "1", Ttl::Default, Expect::Any).await.unwrap();
        let mut one = cache.watch("a").await.unwrap();
        let mut all = cache.watch_prefix("").await.unwrap();
        for watch in [&mut one, &mut all] {
            assert_eq!(next(watch).await, "a=1");
            assert_eq!(next(watch).await, "current");
        }
        cache.put("b", "2", Ttl::Default, Expect::Any).await.unwrap();
        cache.put("a", "3", Ttl::Default, Expect::Any).await.unwrap();
        cache.delete("a", Expect::Any).await.unwrap();
        assert_eq!((next(&mut one).await, next(&mut one).await), ("a=3".to_owned(), "a deleted".to_owned()));
        let mut told = Vec::new();
        for _ in 0..3 {
            told.push(next(&mut all).await);
        }
        assert_eq!(told, ["b=2", "a=3", "a deleted"]);
        cache.put("c", "4", Ttl::Ms(1), Expect::Any).await.unwrap();
        assert_eq!(next(&mut all).await, "c=4");
        tokio::time::sleep(Duration::from_millis(5)).await;
        house.broker.tick(house.broker.now_ms());
        assert_eq!(next(&mut all).await, "c expired");
        client.drop_cache("watched").await.unwrap();
        assert_eq!(code(one.next().await), Some(Code::UnknownCache));
    });
}

/// Many changes come through a credit that is much smaller than they are.
#[test]
fn a_watch_goes_on_as_it_is_read() {
    over_both(|house, scheme| async move {
        let client = house.client(scheme).await;
        client.create_cache("much", CacheSpec::default()).await.unwrap();
        let cache = client.cache("much").unwrap();
        let mut watch = cache.watch_prefix("").await.unwrap();
        assert_eq!(next(&mut watch).await, "current");
        let value = "x".repeat(100_000);
        for n in 0..30 {
            cache.put(format!("{n:02}"), value.clone(), Ttl::Default, Expect::Any).await.unwrap();
            assert_eq!(next(&mut watch).await.len(), 100_003);
        }
    });
}
