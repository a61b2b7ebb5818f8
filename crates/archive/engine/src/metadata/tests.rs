use trifid_archive_adql::types::{Field, Type};

use super::*;

fn hipparcos() -> Vec<Field> {
    let mut fields = vec![Field::new("hip", Type::Int)];
    fields.extend(["ra", "dec", "plx", "e_plx", "hpmag"].map(|name| Field::new(name, Type::Double)));
    fields
}

#[test]
fn a_plain_catalogue_gets_its_position() {
    let (head, info) = describe("demo", "stars", &hipparcos(), &Description::default()).unwrap();
    assert_eq!(head.position, Some(Position { lon: 1, lat: 2 }));
    let ucds: Vec<&str> = head.fields.iter().map(|field| field.ucd.as_deref().unwrap_or("")).collect();
    assert_eq!(
        ucds,
        [
            "meta.id;meta.main",
            "pos.eq.ra;meta.main",
            "pos.eq.dec;meta.main",
            "pos.parallax.trig",
            "stat.error;pos.parallax.trig",
            "phot.mag;em.opt"
        ]
    );
    assert_eq!(head.fields[4].unit.as_deref(), Some("mas"));
    assert_eq!(indexed(&head, &info), [0]);
}

#[test]
fn what_the_source_says_is_kept() {
    let mut fields = hipparcos();
    fields[1].ucd = Some("pos.eq.ra".into());
    fields[1].unit = Some("rad".into());
    let (head, _) = describe("demo", "stars", &fields, &Description::default()).unwrap();
    assert_eq!(head.fields[1].unit.as_deref(), Some("rad"));
    assert!(
        describe("d", "t", &[Field::new("ra", Type::Text)], &Description::default()).unwrap().0.fields[0]
            .ucd
            .is_none()
    );
}

#[test]
fn a_file_overrules_guesses() {
    let text = "
        [table]
        description = 'Stars'
        [column.HPMAG]
        indexed = true
        ucd = 'phot.mag'
        [column.plx]
        unit = ''
        [[key]]
        target = 'demo.names'
        columns = [['hip', 'hip']]
    ";
    let (head, info) = describe("demo", "stars", &hipparcos(), &Description::parse(text).unwrap()).unwrap();
    assert_eq!(info.description.as_deref(), Some("Stars"));
    assert_eq!(head.fields[5].ucd.as_deref(), Some("phot.mag"));
    assert_eq!(head.fields[3].unit, None);
    assert_eq!(indexed(&head, &info), [0, 5]);
    assert_eq!(&*info.keys[0].id, "demo.stars.0");
}

#[test]
fn mistakes_in_a_file_are_named() {
    let unknown = Description::parse("[column.pxl]\nunit = 'mas'").unwrap();
    let error = describe("demo", "stars", &hipparcos(), &unknown).unwrap_err();
    assert_eq!(
        error.to_string(),
        "it describes the column pxl, which the table does not have; did you mean plx?"
    );
    let error = Description::parse("[column.ra]\nunits = 'deg'").unwrap_err().to_string();
    assert!(error.contains("unknown field `units`") && error.contains("line 2"), "{error}");
}
