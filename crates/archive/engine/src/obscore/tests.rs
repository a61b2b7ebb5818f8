use super::*;

const IMAGES: &str = "
    [[source]]
    table = 'survey.images'
    where = 'quality > 0'
    [source.columns]
    dataproduct_type = \"'image'\"
    calib_level = '2'
    obs_collection = \"'Survey'\"
    obs_id = 'id'
    obs_publisher_did = \"'ivo://example.org/x?' || id\"
    s_ra = 'ra'
    s_dec = 'dec'
    s_region = 'footprint'
    obs_title = 'title'
";

#[test]
fn a_mapping_becomes_a_query_of_every_mandatory_column() {
    let mapping = Mapping::parse(IMAGES).unwrap();
    assert_eq!(mapping.standards().len(), 31);
    let [query] = mapping.queries().try_into().unwrap();
    assert!(query.starts_with("SELECT CAST('image' AS VARCHAR) AS dataproduct_type,"), "{query}");
    assert!(query.contains("CAST(NULL AS BIGINT) AS pol_xel"), "{query}");
    assert!(query.contains("footprint AS s_region"), "{query}");
    assert!(query.ends_with("FROM survey.images\nWHERE quality > 0"), "{query}");
}

#[test]
fn a_mapping_must_give_what_may_not_be_null() {
    let error = Mapping::parse(&IMAGES.replace("obs_id = 'id'", "")).unwrap_err().to_string();
    assert_eq!(
        error,
        "the source survey.images gives no obs_id, which must not be NULL (ObsCore 1.1 section 4)"
    );
    let error = Mapping::parse(&IMAGES.replace("s_ra", "s_ar")).unwrap_err().to_string();
    assert!(error.starts_with("ObsCore has no column s_ar; did you mean s_"), "{error}");
    assert_eq!(Mapping::parse("source = []"), Err(MappingError::Empty));
}

#[test]
fn the_standard_has_thirty_columns_that_must_be_there() {
    assert_eq!(MANDATORY.len(), 30);
    let required: Vec<&str> = MANDATORY.iter().filter(|one| one.required).map(|one| one.name).collect();
    assert_eq!(required, ["calib_level", "obs_collection", "obs_id", "obs_publisher_did"]);
}
