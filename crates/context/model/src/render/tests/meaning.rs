//! An answer read back as input means what the record holds.

use proptest::prelude::*;

use super::World;
use super::model::{Ent, Inst, entity};
use crate::input::{AttributeInput, Content, EntityInput, Mode, Reader};
use crate::json::Doc;
use crate::ld::CoreVersion;
use crate::render::{Format, Style};
use crate::symbol::Budget;

/// Everything that an input says of attributes, without how it was said.
fn meaning(attributes: &[AttributeInput<'_>]) -> Vec<String> {
    let one = |attribute: &AttributeInput<'_>| {
        let Content::Set(input) = &attribute.content else { panic!("an answer deletes nothing") };
        let subs = meaning(&input.subs);
        let kept = (&attribute.dataset, input.kind, &input.value, &input.observed, &input.unit_code);
        format!("{:?} {kept:?} {:?} {subs:?}", attribute.name, input.slots)
    };
    attributes.iter().map(one).collect()
}

/// Makes identifiers that input accepts.
fn tame(instances: &mut [(String, Vec<Inst>)]) {
    for inst in instances.iter_mut().flat_map(|(_, instances)| instances) {
        if let Some(dataset) = &mut inst.dataset {
            *dataset = dataset.replace('"', "");
        }
        tame(&mut inst.subs);
    }
}

fn rendered(world: &World, ent: &Ent, format: Format) -> Vec<u8> {
    let style = Style { format, ..Style::default() };
    let mut out = Vec::new();
    world.renderer(&style).entity(&ent.record(&world.symbols), &mut out);
    out
}

proptest! {
    #[test]
    fn concise_means_what_normalized_means(mut ent in entity()) {
        ent.id = "urn:x:1".into();
        tame(&mut ent.attributes);
        let world = World::new();
        let budget = Budget::new(u32::MAX);
        let context = world.cores.get(CoreVersion::V1_9);
        let reader = Reader { context, symbols: &world.symbols, budget: &budget, mode: Mode::default() };
        let read = |out: &[u8]| {
            let doc = Doc::parse(out).unwrap();
            reader.entity(doc.root()).map(|input: EntityInput<'_>| meaning(&input.attributes))
        };
        let normalized = rendered(&world, &ent, Format::Normalized);
        let concise = rendered(&world, &ent, Format::Concise);
        // Not every value of the strategy is one that input accepts, such as an empty geometry.
        if let Ok(expected) = read(&normalized) {
            prop_assert_eq!(read(&concise), Ok(expected), "{}", String::from_utf8_lossy(&concise));
        }
    }
}
