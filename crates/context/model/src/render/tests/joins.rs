//! Linked entity retrieval (4.5.23).

use std::collections::HashMap;

use serde_json::{Value, json};

use super::model::{Ent, Inst, ent, inst};
use super::{World, parsed};
use crate::record::{Kind, Record, Slot};
use crate::render::{Format, Join, Style};

fn rel(id: &str) -> Inst {
    inst(Kind::Relationship, json!(id))
}

fn name(text: &str) -> Inst {
    inst(Kind::Property, json!(text))
}

/// A building in a city in a country which has the building for its monument.
fn entities() -> Vec<Ent> {
    vec![
        ent("urn:b:1", "Building", vec![("name", name("Tower")), ("locatedAt", rel("urn:c:1"))]),
        ent("urn:c:1", "City", vec![("name", name("Paris")), ("isIn", rel("urn:n:1"))]),
        ent("urn:n:1", "Country", vec![("name", name("France")), ("monument", rel("urn:b:1"))]),
    ]
}

struct Ask<'a> {
    format: Format,
    levels: usize,
    pick: Option<&'a str>,
    omit: Option<&'a str>,
    contained_by: &'a [&'a str],
    budget: usize,
}

impl Default for Ask<'_> {
    fn default() -> Self {
        Ask { format: Format::Normalized, levels: 2, pick: None, omit: None, contained_by: &[], budget: 100 }
    }
}

impl Ask<'_> {
    /// The first entity with what it links to, inline or flat.
    fn answer(&self, entities: &[Ent], flat: bool) -> Value {
        let world = World::new();
        let records: HashMap<String, Record> =
            entities.iter().map(|ent| (ent.id.clone(), ent.record(&world.symbols))).collect();
        let root = &records[&entities[0].id];
        let style = Style {
            format: self.format,
            projection: world.projection(self.pick, self.omit),
            ..Style::default()
        };
        let renderer = world.renderer(&style);
        let mut resolve = |id: &str| records.get(id).cloned();
        let ids = self.contained_by.iter().map(|id| (*id).to_owned());
        let mut join = Join::new(self.levels, self.budget, &mut resolve).contained_by(ids);
        let mut out = Vec::new();
        if !flat {
            renderer.entity_joined(root, &mut join, &mut out);
            return parsed(&out);
        }
        renderer.open_list(&mut out);
        renderer.item(root, &mut out);
        for linked in renderer.linked(std::slice::from_ref(root), &mut join) {
            renderer.linked_item(&linked, &mut out);
        }
        renderer.close_list(&mut out);
        parsed(&out)
    }

    #[track_caller]
    fn check(&self, inline: &Value, flat: &Value) {
        assert_eq!(&self.answer(&entities(), false), inline);
        assert_eq!(&self.answer(&entities(), true), flat);
    }
}

#[test]
fn two_levels_normalized() {
    let name = |text| json!({"type": "Property", "value": text});
    let rel = |id| json!({"type": "Relationship", "object": id});
    let with = |id, entity: Value| json!({"type": "Relationship", "object": id, "entity": entity});
    // The country's monument is the building itself: met before, so not entered.
    let country =
        json!({"id": "urn:n:1", "type": "Country", "name": name("France"), "monument": rel("urn:b:1")});
    let city = |is_in| json!({"id": "urn:c:1", "type": "City", "name": name("Paris"), "isIn": is_in});
    let building = |at| json!({"id": "urn:b:1", "type": "Building", "name": name("Tower"), "locatedAt": at});
    Ask { levels: 9, ..Ask::default() }.check(
        &building(with("urn:c:1", city(with("urn:n:1", country.clone())))),
        &json!([building(rel("urn:c:1")), city(rel("urn:n:1")), country]),
    );
    Ask { levels: 1, ..Ask::default() }.check(
        &building(with("urn:c:1", city(rel("urn:n:1")))),
        &json!([building(rel("urn:c:1")), city(rel("urn:n:1"))]),
    );
    let alone = building(rel("urn:c:1"));
    Ask { contained_by: &["urn:c:1"], ..Ask::default() }.check(&alone, &json!([alone]));
    Ask { budget: 0, ..Ask::default() }.check(&alone, &json!([alone]));
}

#[test]
fn simplified_entities_take_the_place_of_their_identifiers() {
    Ask { format: Format::Simplified, ..Ask::default() }.check(
        &json!({"id": "urn:b:1", "type": "Building", "name": "Tower", "locatedAt":
            {"id": "urn:c:1", "type": "City", "name": "Paris", "isIn":
                {"id": "urn:n:1", "type": "Country", "name": "France", "monument": "urn:b:1"}}}),
        &json!([
            {"id": "urn:b:1", "type": "Building", "name": "Tower", "locatedAt": "urn:c:1"},
            {"id": "urn:c:1", "type": "City", "name": "Paris", "isIn": "urn:n:1"},
            {"id": "urn:n:1", "type": "Country", "name": "France", "monument": "urn:b:1"},
        ]),
    );
}

#[test]
fn clause_4_21_projections_of_linked_entities() {
    let ask = Ask { format: Format::Simplified, ..Ask::default() };
    Ask { pick: Some("id,locatedAt{id,isIn{name}}"), ..ask }.check(
        &json!({"id": "urn:b:1", "locatedAt": {"id": "urn:c:1", "isIn": {"name": "France"}}}),
        &json!([
            {"id": "urn:b:1", "locatedAt": "urn:c:1"},
            {"id": "urn:c:1", "isIn": "urn:n:1"},
            {"name": "France"},
        ]),
    );
    let ask = Ask { format: Format::Simplified, ..Ask::default() };
    Ask { omit: Some("type,locatedAt{name,isIn{name}}"), ..ask }.check(
        &json!({"id": "urn:b:1", "name": "Tower", "locatedAt":
            {"id": "urn:c:1", "type": "City", "isIn":
                {"id": "urn:n:1", "type": "Country", "monument": "urn:b:1"}}}),
        &json!([
            {"id": "urn:b:1", "name": "Tower", "locatedAt": "urn:c:1"},
            {"id": "urn:c:1", "type": "City", "isIn": "urn:n:1"},
            {"id": "urn:n:1", "type": "Country", "monument": "urn:b:1"},
        ]),
    );
    let ask = Ask { format: Format::Simplified, ..Ask::default() };
    // A relationship that is not shown leads nowhere.
    Ask { pick: Some("id,name"), ..ask }
        .check(&json!({"id": "urn:b:1", "name": "Tower"}), &json!([{"id": "urn:b:1", "name": "Tower"}]));
}

#[test]
fn several_targets() {
    let objects = json!([{"object": "urn:c:1"}, {"object": "urn:lost:1"}, {"object": "urn:c:2"}]);
    let entities = [
        ent(
            "urn:b:1",
            "B",
            vec![
                ("route", inst(Kind::ListRelationship, objects.clone())),
                ("near", inst(Kind::Relationship, json!(["urn:c:3", "urn:c:1"]))),
                ("lost", inst(Kind::Relationship, json!(["urn:lost:1"]))),
            ],
        ),
        ent("urn:c:1", "C", vec![]),
        ent("urn:c:2", "C", vec![]),
        ent("urn:c:3", "C", vec![]),
    ];
    let own = |id| json!({"id": id, "type": "C"});
    let value = Ask::default().answer(&entities, false);
    assert_eq!(
        value["route"],
        json!({"type": "ListRelationship", "objectList": objects, "entityList": [own("urn:c:1"), own("urn:c:2")]})
    );
    assert_eq!(value["near"]["entity"], json!([own("urn:c:3")]));
    assert_eq!(value["lost"], json!({"type": "Relationship", "object": ["urn:lost:1"]}));
    let value = Ask { format: Format::Simplified, ..Ask::default() }.answer(&entities, false);
    assert_eq!(value["route"], json!([own("urn:c:1"), "urn:lost:1", own("urn:c:2")]));
    assert_eq!(value["near"], json!([own("urn:c:3"), "urn:c:1"]));
    let value = Ask { format: Format::Concise, ..Ask::default() }.answer(&entities, false);
    assert_eq!(
        value["route"],
        json!({"objectList": ["urn:c:1", "urn:lost:1", "urn:c:2"], "entityList": [own("urn:c:1"), own("urn:c:2")]})
    );
    let flat = Ask::default().answer(&entities, true);
    let ids: Vec<_> = flat.as_array().unwrap().iter().map(|entity| entity["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["urn:b:1", "urn:c:1", "urn:c:2", "urn:c:3"]);
}

#[test]
fn an_object_type_narrows_and_attributes_of_attributes_do_not_join() {
    let typed = |kind: &str| Inst { slots: vec![(Slot::ObjectType, kind.to_owned())], ..rel("urn:c:1") };
    let with_sub = Inst { subs: vec![("by".into(), vec![rel("urn:c:1")])], ..name("x") };
    let entities = [
        ent("urn:b:1", "B", vec![("a", typed("Other")), ("b", typed("C")), ("c", with_sub)]),
        ent("urn:c:1", "C", vec![]),
    ];
    let value = Ask::default().answer(&entities, false);
    assert_eq!(value["a"].get("entity"), None);
    assert_eq!(value["b"]["entity"], json!({"id": "urn:c:1", "type": "C"}));
    assert_eq!(value["c"]["by"], json!({"type": "Relationship", "object": "urn:c:1"}));
    let value = Ask { format: Format::Simplified, ..Ask::default() }.answer(&entities, false);
    assert_eq!((&value["a"], &value["b"]["id"]), (&json!("urn:c:1"), &json!("urn:c:1")));
}
