//! What happens in Porto Lume: vehicles and vessels move, counts and readings drift.
//!
//! Pure: a [`Life`] is stepped with a time and a source of chance, and answers the attributes that changed,
//! as entity fragments that keep what the attribute says beside its value (unit, accuracy). The values are
//! plausible, not a simulation.

use serde_json::{Value, json};
use trifid_base_runtime::Entropy;

use super::world::Entity;

/// Readings that drift, by the type of their entity: attribute, step a tick, bounds, decimal digits.
const READINGS: &[(&str, &str, f64, f64, f64, u32)] = &[
    ("TrafficFlowObserved", "intensity", 12.0, 0.0, 2_400.0, 0),
    ("TrafficFlowObserved", "occupancy", 0.02, 0.0, 1.0, 2),
    ("TrafficFlowObserved", "averageVehicleSpeed", 1.5, 5.0, 90.0, 1),
    ("AirQualityObserved", "no2", 0.6, 1.0, 180.0, 1),
    ("AirQualityObserved", "pm10", 0.5, 1.0, 150.0, 1),
    ("OffStreetParking", "availableSpotNumber", 2.0, 0.0, 180.0, 0),
    ("WeatherObserved", "temperature", 0.1, -2.0, 38.0, 1),
    ("WeatherObserved", "windSpeed", 0.3, 0.0, 30.0, 1),
    ("NoiseLevelObserved", "LAeq", 0.8, 35.0, 95.0, 1),
    ("SeaConditionsObserved", "significantWaveHeight", 0.05, 0.1, 9.0, 2),
    ("PublicTransportStop", "peopleWaiting", 1.0, 0.0, 60.0, 0),
    ("EVChargingStation", "currentPower", 1.0, 0.0, 150.0, 1),
];

/// Types that move, with the member of their speed and of their course, and metres a second in its unit.
const MOVERS: &[(&str, &str, &str, f64)] = &[
    ("Vehicle", "speed", "heading", 1.0 / 3.6),
    ("Vessel", "speedOverGround", "courseOverGround", 0.514_444),
];

/// How far a mover strays before it turns back.
const RANGE_METRES: f64 = 1_500.0;
const METRES_PER_DEGREE: f64 = 111_195.0;

/// Every entity of the world that lives.
#[derive(Debug, Default)]
pub(crate) struct Life {
    readings: Vec<Reading>,
    movers: Vec<Mover>,
}

/// One attribute of one entity; `instance` is the whole attribute as it will be sent next.
#[derive(Debug)]
struct Reading {
    entity: Value,
    name: &'static str,
    instance: Value,
    step: f64,
    bounds: (f64, f64),
    digits: u32,
}

#[derive(Debug)]
struct Mover {
    entity: Value,
    names: (&'static str, &'static str),
    location: Value,
    speed: Value,
    course: Value,
    metres_per_second: f64,
    home: (f64, f64),
}

impl Life {
    /// Takes note of what lives among `entities`.
    pub(crate) fn note(&mut self, entities: &[Entity]) {
        for entity in entities {
            self.readings.extend(READINGS.iter().filter_map(|rule| reading(entity, rule)));
            self.movers.extend(MOVERS.iter().filter_map(|rule| mover(entity, rule)));
        }
    }

    /// One tick: every mover moves, and a quarter of the readings drift. Answers entity fragments.
    pub(crate) fn step(&mut self, now: &str, entropy: &dyn Entropy) -> Vec<Value> {
        let mut fragments: Vec<Value> =
            self.movers.iter_mut().map(|mover| mover.step(now, entropy)).collect();
        let drifting = self.readings.iter_mut().filter(|_| entropy.next_u64().is_multiple_of(4));
        fragments.extend(drifting.map(|reading| reading.step(now, entropy)));
        fragments
    }
}

/// A number from -1 to 1.
fn swing(entropy: &dyn Entropy) -> f64 {
    let bits = u32::try_from(entropy.next_u64() >> 32).unwrap_or(u32::MAX);
    f64::from(bits) / f64::from(u32::MAX) * 2.0 - 1.0
}

fn rounded(value: f64, digits: u32) -> Value {
    let scale = 10f64.powi(i32::try_from(digits).unwrap_or(0));
    let value = (value * scale).round() / scale;
    // A whole number is written as one. The bounds of every rule fit.
    #[allow(clippy::cast_possible_truncation)]
    if digits == 0 { json!(value as i64) } else { json!(value) }
}

fn has_type(entity: &Entity, name: &str) -> bool {
    match entity.get("type") {
        Some(Value::Array(types)) => types.iter().any(|each| each == name),
        other => other.and_then(Value::as_str) == Some(name),
    }
}

/// The instance of an attribute without a dataset id, in its normalized form.
fn default_instance(entity: &Entity, name: &str) -> Option<Value> {
    let attribute = entity.get(name)?;
    let instances = attribute.as_array().map_or(std::slice::from_ref(attribute), Vec::as_slice);
    instances.iter().find(|instance| instance.is_object() && instance.get("datasetId").is_none()).cloned()
}

fn head(entity: &Entity) -> Value {
    json!({"id": entity.get("id"), "type": entity.get("type")})
}

fn reading(entity: &Entity, rule: &(&str, &'static str, f64, f64, f64, u32)) -> Option<Reading> {
    let (of, name, step, low, high, digits) = *rule;
    let instance = default_instance(entity, name).filter(|_| has_type(entity, of))?;
    instance.get("value")?.as_f64()?;
    Some(Reading { entity: head(entity), name, instance, step, bounds: (low, high), digits })
}

impl Reading {
    fn step(&mut self, now: &str, entropy: &dyn Entropy) -> Value {
        let value = self.instance["value"].as_f64().unwrap_or(self.bounds.0);
        let next = (value + swing(entropy) * self.step).clamp(self.bounds.0, self.bounds.1);
        self.instance["value"] = rounded(next, self.digits);
        self.instance["observedAt"] = json!(now);
        let mut fragment = self.entity.clone();
        fragment[self.name] = self.instance.clone();
        fragment
    }
}

fn mover(entity: &Entity, rule: &(&str, &'static str, &'static str, f64)) -> Option<Mover> {
    let (of, speed, course, metres_per_second) = *rule;
    let location = default_instance(entity, "location").filter(|_| has_type(entity, of))?;
    let home = coordinates(&location)?;
    let (names, speed, course) =
        ((speed, course), default_instance(entity, speed)?, default_instance(entity, course)?);
    Some(Mover { entity: head(entity), names, location, speed, course, metres_per_second, home })
}

fn coordinates(location: &Value) -> Option<(f64, f64)> {
    let pair = location.pointer("/value/coordinates")?;
    Some((pair.get(0)?.as_f64()?, pair.get(1)?.as_f64()?))
}

impl Mover {
    fn step(&mut self, now: &str, entropy: &dyn Entropy) -> Value {
        let here = coordinates(&self.location).unwrap_or(self.home);
        let speed = (number(&self.speed) + swing(entropy) * 2.0).clamp(0.0, 60.0);
        let course = self.turned(here, number(&self.course), entropy);
        let (longitude, latitude) = moved(here, course, speed * self.metres_per_second);
        self.location["value"]["coordinates"] = json!([rounded(longitude, 6), rounded(latitude, 6)]);
        self.speed["value"] = rounded(speed, 1);
        self.course["value"] = rounded(course, 0);
        self.fragment(now)
    }

    fn fragment(&mut self, now: &str) -> Value {
        let mut fragment = self.entity.clone();
        let names = ["location", self.names.0, self.names.1];
        for (name, instance) in names.into_iter().zip([&mut self.location, &mut self.speed, &mut self.course])
        {
            instance["observedAt"] = json!(now);
            fragment[name] = instance.clone();
        }
        fragment
    }

    /// The next course: a small turn, and towards home for one that has strayed.
    fn turned(&self, here: (f64, f64), course: f64, entropy: &dyn Entropy) -> f64 {
        let (east, north) = metres(here, self.home);
        let turned = if east.hypot(north) > RANGE_METRES {
            east.atan2(north).to_degrees()
        } else {
            course + swing(entropy) * 12.0
        };
        turned.rem_euclid(360.0)
    }
}

fn number(instance: &Value) -> f64 {
    instance["value"].as_f64().unwrap_or(0.0)
}

/// East and north from one position to another, on the flat map that a small city allows.
fn metres(from: (f64, f64), to: (f64, f64)) -> (f64, f64) {
    let east = (to.0 - from.0) * METRES_PER_DEGREE * from.1.to_radians().cos();
    (east, (to.1 - from.1) * METRES_PER_DEGREE)
}

fn moved(from: (f64, f64), course: f64, distance: f64) -> (f64, f64) {
    let (east, north) = (course.to_radians().sin() * distance, course.to_radians().cos() * distance);
    let east = east / (METRES_PER_DEGREE * from.1.to_radians().cos());
    (from.0 + east, from.1 + north / METRES_PER_DEGREE)
}

#[cfg(test)]
mod tests {
    use trifid_base_runtime::SeededEntropy;

    use super::super::world;
    use super::*;

    const NOW: &str = "2026-06-01T12:00:00Z";

    fn life() -> Life {
        let mut life = Life::default();
        for (_, text) in world::FILES {
            life.note(&world::entities(text).unwrap());
        }
        life
    }

    #[test]
    fn every_rule_finds_something_that_lives() {
        let life = life();
        for (of, name, ..) in READINGS {
            assert!(life.readings.iter().any(|reading| reading.name == *name), "{of} {name}");
        }
        for (of, ..) in MOVERS {
            assert!(life.movers.iter().any(|mover| mover.entity["type"].to_string().contains(of)), "{of}");
        }
    }

    #[test]
    fn a_step_answers_fragments_that_keep_what_stood_beside_the_value() {
        let fragments = life().step(NOW, &SeededEntropy::new(1));
        let tram = fragments.iter().find(|fragment| fragment["id"] == "urn:ngsi-ld:Vehicle:tram-01").unwrap();
        assert_eq!(tram["type"], json!(["Vehicle", "ElectricVehicle"]));
        assert_eq!(tram["speed"]["unitCode"], "KMH");
        assert_eq!(tram["location"]["observedAt"], NOW);
        assert_eq!(tram["location"]["value"]["type"], "Point");
    }

    #[test]
    fn a_quarter_of_an_hour_stays_within_its_bounds() {
        let (mut life, entropy) = (life(), SeededEntropy::new(2));
        for _ in 0..900 {
            life.step(NOW, &entropy);
        }
        for reading in &life.readings {
            let value = number(&reading.instance);
            assert!((reading.bounds.0..=reading.bounds.1).contains(&value), "{} {value}", reading.name);
        }
        for mover in &life.movers {
            let (east, north) = metres(mover.home, coordinates(&mover.location).unwrap());
            assert!(east.hypot(north) < RANGE_METRES + 200.0, "{} {east} {north}", mover.entity);
        }
    }

    #[test]
    fn the_same_seed_lives_the_same_life() {
        let lived = |seed| life().step(NOW, &SeededEntropy::new(seed));
        assert_eq!(lived(3), lived(3));
        assert_ne!(lived(3), lived(4));
    }

    #[test]
    fn a_course_is_a_compass_course() {
        let start = (-20.5, 38.4);
        let (east, north) = metres(start, moved(start, 90.0, 100.0));
        assert!((east - 100.0).abs() < 0.1 && north.abs() < 0.1, "{east} {north}");
        let (east, north) = metres(start, moved(start, 180.0, 100.0));
        assert!(east.abs() < 0.1 && (north + 100.0).abs() < 0.1, "{east} {north}");
    }
}
