use std::sync::Arc;

use trifid_context_engine::TenantName;
use trifid_context_engine::broker::Paging;
use trifid_context_engine::limits::MAX_TENANTS;
use trifid_context_engine::memory::MemoryStore;
use trifid_context_engine::store::EntityStore;
use trifid_context_engine::testing::{Bench, Step, consistent, random_steps, scripted_steps, transcript};
use trifid_context_model::ld::Context;
use trifid_context_model::query::names;
use trifid_context_model::query::order::{self, Collation, Ordering};
use trifid_context_model::record::Record;
use trifid_context_model::symbol::Symbols;

fn store() -> Arc<dyn EntityStore> {
    Arc::new(MemoryStore::new(Arc::new(Symbols::new())))
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn the_scripted_corpus_is_answered_as_written_down() {
    let lines = block_on(transcript(store(), &scripted_steps()));
    let expected = include_str!("../../testdata/scripted.txt");
    if std::env::var_os("TRIFID_WRITE_TESTDATA").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/scripted.txt");
        std::fs::write(path, lines.join("\n") + "\n").unwrap();
    }
    for (line, expected) in lines.iter().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(lines.len(), expected.lines().count());
}

#[test]
fn indexes_and_counters_agree_with_the_entities_after_any_operations() {
    for seed in 0..20 {
        let store = store();
        let steps = random_steps(seed, 400);
        let first = block_on(transcript(store.clone(), &steps));
        block_on(consistent(store));
        let again = block_on(transcript(self::store(), &steps));
        assert_eq!(first, again, "seed {seed}: the same operations give the same answers");
    }
}

#[test]
fn requests_that_are_refused_use_up_no_tenants() {
    let bench = Bench::new(store());
    let names: Vec<String> = (0..=MAX_TENANTS).map(|n| format!("t{n}")).collect();
    for name in &names {
        let said =
            block_on(bench.run(&Step::Create(name.clone().leak(), r#"{"id":"x","type":"T"}"#.to_owned())));
        assert!(said.contains("is not a URI"), "{said}");
    }
    let said = block_on(bench.run(&Step::Create("late", r#"{"id":"urn:x:1","type":"T"}"#.to_owned())));
    assert!(!said.contains("no further tenant"), "{said}");
}

#[test]
fn sorted_pages_fit_together() {
    let bench = Bench::new(store());
    let mut dice = fastrand::Rng::with_seed(3);
    for n in 0..200 {
        let value = dice.u32(..40);
        let body = format!("{{\"id\":\"urn:x:{n}\",\"type\":\"A\",\"n\":{value}}}");
        block_on(bench.run(&Step::Create("", body)));
    }
    let terms = order::parse("n;desc").unwrap();
    let context = Context::identity();
    let order = Ordering::new(&terms, None, Collation::CodePoint, &names::expander(&context)).unwrap();
    let filter = bench.filter(Some("A"), None).unwrap();
    let page = |offset, limit| {
        let mut lines = Vec::new();
        let mut sink = |record: &Record| {
            let value = record.instances().next().unwrap().value().parse::<u32>().unwrap();
            lines.push((std::cmp::Reverse(value), record.id().to_owned()));
        };
        let paging = Paging { offset, limit, count: true };
        let tenant = TenantName::default_tenant();
        let page = block_on(bench.broker.query(&tenant, &filter, Some(&order), paging, &mut sink)).unwrap();
        assert_eq!((page.total, page.more), (Some(200), offset + limit < 200));
        lines
    };
    let all = page(0, 500);
    assert_eq!(all.len(), 200);
    assert!(all.is_sorted());
    let paged: Vec<_> = (0..200).step_by(7).flat_map(|offset| page(offset, 7)).collect();
    assert_eq!(paged, all);
}
