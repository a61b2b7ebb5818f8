//! The four shapes: their requests, what the answers must look like, and their targets.

use crate::broker::{Context, ENTITIES};
use crate::client::Reply;
use crate::error::Error;
use crate::figures::Spread;
use crate::limits;
use crate::request::{Expect, Requests, SLOT, Template, serial_digits};
use crate::seed;
use crate::verdict::{Bound, Target};

/// How many values each entity is given in turn by PATCH.
const VALUES: usize = 8;
/// The running number of the create that is sent once before counting; the others start at zero and never
/// get there.
const PROBE: u64 = 999_999_999_999;
/// How many created entities are looked at after each run.
const LOOKED_AT: u64 = 20;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Query by type, twenty entities (5.7.2).
    List,
    /// Retrieve by id (5.7.1).
    Retrieve,
    /// Partial update of one attribute (5.6.4).
    Patch,
    /// Create one entity (5.6.1).
    Create,
}

impl Shape {
    /// In the order in which they are measured: those that change nothing first.
    pub(super) const ALL: [Shape; 4] = [Shape::List, Shape::Retrieve, Shape::Patch, Shape::Create];

    /// The name in a report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Shape::List => "list of 20",
            Shape::Retrieve => "retrieve",
            Shape::Patch => "patch one attribute",
            Shape::Create => "create",
        }
    }

    /// The name for `--only`.
    pub(super) fn cell(self) -> &'static str {
        match self {
            Shape::List => "list",
            Shape::Retrieve => "retrieve",
            Shape::Patch => "patch",
            Shape::Create => "create",
        }
    }

    /// Whether the store is larger after a run than before, so that each round needs a fresh one.
    pub(super) fn grows(self) -> bool {
        self == Shape::Create
    }

    /// The requests, encoded.
    pub(super) fn requests(self, host: &str) -> Requests {
        Requests::new(match self {
            Shape::List => vec![get(host, &list_target())],
            Shape::Retrieve => each_seeded(|id, _| get(host, &format!("{ENTITIES}/{id}"))),
            Shape::Patch => {
                (0..VALUES).flat_map(|turn| each_seeded(|id, number| patch(host, id, number, turn))).collect()
            }
            Shape::Create => {
                vec![Template::new("POST", host, ENTITIES, Some(&created(SLOT)), Expect::status(201))]
            }
        })
    }

    /// Sends each request once, looks at its answer, and lets every later answer be expected to equal it
    /// where it cannot change. Returns an answer for the floor to repeat.
    pub(super) fn learn(self, context: &mut Context, requests: &mut Requests) -> Result<Reply, Error> {
        let mut first = None;
        for template in requests.templates_mut() {
            let reply = context.send(template, PROBE)?;
            template.expect.body_bytes = Some(reply.body.len() as u64);
            template.expect.body = Some(reply.body.clone().into_boxed_slice());
            first.get_or_insert(reply);
        }
        let reply = first.expect("a shape has at least one request");
        self.look_at(context, &reply)?;
        Ok(reply)
    }

    fn look_at(self, context: &mut Context, reply: &Reply) -> Result<(), Error> {
        match self {
            Shape::List => look_at_list(context, reply),
            Shape::Retrieve => (0..limits::SEEDED_ENTITIES).try_for_each(|number| {
                let id = seed::seeded_id(number);
                context.expect_entity(&id, &seed::entity(&id, number))
            }),
            Shape::Patch => look_at_patched(context),
            Shape::Create => {
                look_at_location(context, reply)?;
                look_at_created(context, PROBE)
            }
        }
    }

    /// Looks at what a run has left behind.
    pub(super) fn verify(self, context: &mut Context, requests: &Requests) -> Result<(), Error> {
        match self {
            Shape::List | Shape::Retrieve => Ok(()),
            Shape::Patch => look_at_patched(context),
            Shape::Create => {
                let end = requests.serial();
                (end.saturating_sub(LOOKED_AT)..end).try_for_each(|serial| look_at_created(context, serial))
            }
        }
    }

    /// The target on CPU per request.
    pub(super) fn target(self, cpu: Option<Spread>, judging: bool) -> Target {
        let (bound, goal) = match self {
            Shape::List => limits::LIST_CPU,
            Shape::Retrieve => limits::RETRIEVE_CPU,
            Shape::Patch => limits::PATCH_CPU,
            Shape::Create => limits::CREATE_CPU,
        };
        let name = format!("{}: server CPU per request, multiple of the floor", self.name());
        Target::judge(&name, Bound::AtMost(bound), Some(goal), cpu, judging)
    }
}

fn get(host: &str, target: &str) -> Template {
    Template::new("GET", host, target, None, Expect::status(200))
}

fn list_target() -> String {
    format!("{ENTITIES}?type={}&limit={}", seed::TYPE, limits::LIST_ENTITIES)
}

fn each_seeded(template: impl Fn(&str, usize) -> Template) -> Vec<Template> {
    (0..limits::SEEDED_ENTITIES).map(|number| template(&seed::seeded_id(number), number)).collect()
}

fn patch(host: &str, id: &str, number: usize, turn: usize) -> Template {
    let target = format!("{ENTITIES}/{id}/attrs/{}", seed::PATCHED);
    let body = seed::patch(patch_number(number, turn));
    Template::new("PATCH", host, &target, Some(&body), Expect::status(204))
}

/// Which value an entity is given in a turn: another one than in the turn before.
fn patch_number(number: usize, turn: usize) -> usize {
    number + turn * limits::SEEDED_ENTITIES
}

fn created_id(serial: &str) -> String {
    format!("urn:ngsi-ld:{}:created-{serial}", seed::TYPE)
}

fn created(serial: &str) -> String {
    seed::entity(&created_id(serial), 7)
}

/// A page of twenty different entities, each as it was seeded.
fn look_at_list(context: &mut Context, reply: &Reply) -> Result<(), Error> {
    let page = reply.json().map_err(|what| context.wrong(what))?;
    let entities = page.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut seen = std::collections::BTreeSet::new();
    for entity in entities {
        let id = entity["id"].as_str().unwrap_or_default();
        let number = (0..limits::SEEDED_ENTITIES).find(|number| seed::seeded_id(*number) == id);
        let number = number.ok_or_else(|| context.wrong(format!("an entity that nobody created: {id}")))?;
        context.expect_same(&seed::entity(id, number), entity)?;
        seen.insert(number);
    }
    if seen.len() == limits::LIST_ENTITIES && entities.len() == seen.len() {
        return Ok(());
    }
    Err(context.wrong(format!("a page of {} entities, {} of them different", entities.len(), seen.len())))
}

/// Each entity is as seeded, but for the value that one of the turns gave it.
fn look_at_patched(context: &mut Context) -> Result<(), Error> {
    for number in 0..limits::SEEDED_ENTITIES {
        let id = seed::seeded_id(number);
        let mut answered = context.retrieve(&id)?;
        let speed = answered[seed::PATCHED]["value"].to_string();
        if !(0..VALUES).any(|turn| seed::speed(patch_number(number, turn)) == speed) {
            return Err(context.wrong(format!("{id}: a value {speed} that no PATCH gave")));
        }
        let seeded: f64 = seed::speed(number).parse().expect("a speed is a number");
        answered[seed::PATCHED]["value"] = seeded.into();
        context.expect_same(&seed::entity(&id, number), &answered)?;
    }
    Ok(())
}

/// 6.4.3.1: the answer to a create names where the entity is.
fn look_at_location(context: &mut Context, reply: &Reply) -> Result<(), Error> {
    let expected = format!("{ENTITIES}/{}", created_id(&digits(PROBE)));
    let location = reply.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"));
    match location {
        Some((_, value)) if value.ends_with(&expected) => Ok(()),
        _ => Err(context.wrong(format!("a create without Location {expected}: {:?}", reply.headers))),
    }
}

fn look_at_created(context: &mut Context, serial: u64) -> Result<(), Error> {
    let digits = digits(serial);
    context.expect_entity(&created_id(&digits), &created(&digits))
}

fn digits(serial: u64) -> String {
    String::from_utf8_lossy(&serial_digits(serial)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_has_a_cell_of_its_own() {
        let cells: Vec<&str> = Shape::ALL.iter().map(|shape| shape.cell()).collect();
        assert_eq!(cells, super::super::CELLS[..4]);
    }

    #[test]
    fn a_turn_gives_every_entity_another_value() {
        for number in 0..limits::SEEDED_ENTITIES {
            for turn in 0..VALUES {
                let now = seed::speed(patch_number(number, turn));
                assert_ne!(now, seed::speed(patch_number(number, (turn + 1) % VALUES)), "{number} {turn}");
            }
        }
    }

    #[test]
    fn requests_are_what_the_shape_says() {
        let first = |shape: Shape| {
            let mut out = Vec::new();
            shape.requests("h").next(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert!(
            first(Shape::List).starts_with("GET /ngsi-ld/v1/entities?type=Vehicle&limit=20 HTTP/1.1\r\n")
        );
        let id = "urn:ngsi-ld:Vehicle:seeded-000000000000";
        assert!(first(Shape::Retrieve).starts_with(&format!("GET /ngsi-ld/v1/entities/{id} HTTP/1.1\r\n")));
        assert!(
            first(Shape::Patch)
                .starts_with(&format!("PATCH /ngsi-ld/v1/entities/{id}/attrs/speed HTTP/1.1\r\n"))
        );
        assert!(first(Shape::Patch).ends_with("\r\n\r\n{\"value\":10.1}"));
        assert!(first(Shape::Create).contains("{\"id\":\"urn:ngsi-ld:Vehicle:created-000000000000\""));
        assert_eq!(Shape::Patch.requests("h").templates_mut().len(), VALUES * limits::SEEDED_ENTITIES);
    }
}
