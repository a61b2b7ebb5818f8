//! The entities that are measured: five attributes each, of the kinds that a fleet posts.
//!
//! Two numbers with unit and time, a string, a position and a relationship. Every value has a fixed width,
//! so all entities have the same length and a wrong length is a wrong answer.

use serde_json::Value;

/// The type of all of them.
pub(crate) const TYPE: &str = "Vehicle";
/// The attribute that PATCH changes.
pub(crate) const PATCHED: &str = "speed";

/// The id of the seeded entity with this number.
pub(crate) fn seeded_id(number: usize) -> String {
    format!("urn:ngsi-ld:{TYPE}:seeded-{number:012}")
}

/// An entity in the normalized representation. `number` varies the values; `id` stands as it is.
pub(crate) fn entity(id: &str, number: usize) -> String {
    let (speed, level) = (speed(number), 100 + number * 7 % 900);
    let (east, north) = (100_000 + number * 37 % 900_000, 100_000 + number * 91 % 900_000);
    let (second, plate, operator) = (number % 60, number % 1_000_000, number % 10);
    let at = format!("2026-05-14T09:30:{second:02}Z");
    let attributes = [
        format!(r#""speed":{{"type":"Property","value":{speed},"unitCode":"KMH","observedAt":"{at}"}}"#),
        format!(r#""batteryLevel":{{"type":"Property","value":0.{level}1,"observedAt":"{at}"}}"#),
        format!(r#""licensePlate":{{"type":"Property","value":"PL-{plate:06}"}}"#),
        format!(
            concat!(
                r#""location":{{"type":"GeoProperty","value":{{"type":"Point","#,
                r#""coordinates":[-20.{east}1,38.{north}1]}},"observedAt":"{at}"}}"#
            ),
            east = east,
            north = north,
            at = at
        ),
        format!(
            r#""operatedBy":{{"type":"Relationship","object":"urn:ngsi-ld:Organization:operator-{operator}"}}"#
        ),
    ];
    format!(r#"{{"id":"{id}","type":"{TYPE}",{}}}"#, attributes.join(","))
}

/// The body of a partial update of [`PATCHED`] (5.6.4): its value alone.
pub(crate) fn patch(number: usize) -> String {
    format!(r#"{{"value":{}}}"#, speed(number))
}

/// The value of [`PATCHED`], always written with four characters.
pub(crate) fn speed(number: usize) -> String {
    format!("{}.{}", 10 + number * 13 % 90, 1 + number * 7 % 9)
}

/// Whether an answer is the entity that was posted: the same members with the same values, nothing more,
/// nothing less. A `@context` is the answer's own.
pub(crate) fn same(posted: &Value, answered: &Value) -> bool {
    let (Value::Object(posted), Value::Object(answered)) = (posted, answered) else {
        return posted == answered;
    };
    let own = |name: &String| name != "@context";
    let members = answered.keys().filter(|name| own(name)).count();
    members == posted.len()
        && posted.iter().all(|(name, value)| answered.get(name).is_some_and(|other| equal(value, other)))
}

/// Equality of JSON in which `1` and `1.0` are one number.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| equal(value, other)))
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_json_of_one_length_with_five_attributes() {
        let lengths: Vec<usize> = (0..3000).map(|number| entity(&seeded_id(number), number).len()).collect();
        assert!(lengths.iter().all(|length| *length == lengths[0]), "lengths differ");
        for number in [0, 1, 59, 999] {
            let value: Value = serde_json::from_str(&entity(&seeded_id(number), number)).unwrap();
            assert_eq!(value.as_object().unwrap().len(), 7);
            assert_eq!(value["id"], seeded_id(number));
        }
    }

    #[test]
    fn patches_have_one_length_and_change_the_value() {
        let patches: Vec<String> = (0..500).map(patch).collect();
        assert!(patches.iter().all(|patch| patch.len() == patches[0].len()));
        assert!(patches.windows(2).all(|pair| pair[0] != pair[1]));
        let value: Value = serde_json::from_str(&patch(42)).unwrap();
        assert_eq!(value["value"].to_string(), speed(42));
    }

    #[test]
    fn numbers_survive_being_read() {
        for number in 0..2000 {
            let text = entity("urn:x:y", number);
            assert_eq!(
                serde_json::from_str::<Value>(&text).unwrap()["speed"]["value"].to_string(),
                speed(number)
            );
        }
    }

    #[test]
    fn sameness_sees_every_difference() {
        let posted: Value = serde_json::from_str(&entity("urn:x:y", 5)).unwrap();
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut other = posted.clone();
            change(&mut other);
            same(&posted, &other)
        };
        assert!(changed(&|_| ()));
        assert!(changed(&|other| other["@context"] = "https://example.org".into()));
        assert!(!changed(&|other| other["speed"]["value"] = 1.into()));
        assert!(!changed(&|other| other["speed"]["unitCode"] = Value::Null));
        assert!(!changed(&|other| other["more"] = 1.into()));
        assert!(!changed(&|other| drop(other.as_object_mut().unwrap().remove("location"))));
        assert!(!changed(&|other| other["location"]["value"]["coordinates"][0] = 1.into()));
        assert!(equal(&serde_json::json!([1, { "a": 2.0 }]), &serde_json::json!([1.0, { "a": 2 }])));
    }
}
