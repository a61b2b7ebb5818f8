use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use trifid_context_engine::TenantName;
use trifid_context_engine::broker::Paging;
use trifid_context_engine::memory::MemoryStore;
use trifid_context_engine::testing::{Bench, Step, consistent};
use trifid_context_model::record::Record;
use trifid_context_model::symbol::Symbols;

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn step(dice: &mut fastrand::Rng) -> Step {
    let id = format!("urn:x:{}", dice.u32(..300));
    let entity_type = if dice.bool() { "A" } else { "B" };
    match dice.u32(..4) {
        0 => Step::Delete("", id),
        1 => Step::Partial("", id, "n".to_owned(), format!("{{\"value\":{}}}", dice.u32(..9))),
        2 => Step::Merge("", id, format!("{{\"type\":\"{entity_type}\",\"m\":1}}")),
        _ => Step::Create("", format!("{{\"id\":\"{id}\",\"type\":\"{entity_type}\",\"n\":1}}")),
    }
}

/// Reads pages while others write: identifiers ascend, and each record is what it was asked to be.
fn read(bench: &Bench, done: &AtomicBool) -> usize {
    let filter = bench.filter(Some("A"), None).unwrap();
    let wanted = |record: &Record| record.types().any(|own| bench.broker.symbols().name(own) == "A");
    let mut seen = 0;
    while !done.load(Ordering::Relaxed) {
        let mut ids: Vec<String> = Vec::new();
        let mut sink = |record: &Record| {
            assert!(wanted(record), "{record:?}");
            ids.push(record.id().to_owned());
        };
        let paging = Paging { offset: 0, limit: 1000, count: false };
        block_on(bench.broker.query(&TenantName::default_tenant(), &filter, None, paging, &mut sink))
            .unwrap();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
        seen += ids.len();
    }
    seen
}

#[test]
fn readers_see_whole_records_in_order_while_writers_come_and_go() {
    let store = Arc::new(MemoryStore::new(Arc::new(Symbols::new())));
    let bench = Bench::new(store.clone());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(|| read(&bench, &done))).collect();
        let writers: Vec<_> = (0..3)
            .map(|seed| {
                let bench = &bench;
                scope.spawn(move || {
                    let mut dice = fastrand::Rng::with_seed(seed);
                    for _ in 0..5_000 {
                        block_on(bench.run(&step(&mut dice)));
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        assert!(readers.into_iter().map(|reader| reader.join().unwrap()).sum::<usize>() > 0);
    });
    block_on(consistent(store));
}
