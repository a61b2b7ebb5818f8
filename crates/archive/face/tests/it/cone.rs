//! Simple cone search (SCS 1.03).

use crate::harness::Door;

#[tokio::test]
async fn a_cone_finds_what_is_in_it() {
    let door = Door::new();
    let answer = door.get("/scs/demo.stars?RA=10&DEC=-5&SR=0.2").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/xml"));
    assert_eq!(answer.text().matches("<TR>").count(), 2);
    let fields = answer.xml().all("FIELD");
    let ucds: Vec<&str> = fields.iter().map(|field| field.get("ucd")).collect();
    assert_eq!(ucds, ["ID_MAIN", "POS_EQ_RA_MAIN", "POS_EQ_DEC_MAIN", "phot.mag"]);
    assert_eq!(fields[0].get("datatype"), "char");
    let whole = door.get("/scs/demo.stars?RA=10&DEC=-5&SR=180&VERB=3").await;
    assert_eq!((whole.text().matches("<TR>").count(), whole.xml().all("FIELD").len()), (5, 5));
    let least = door.get("/scs/demo.stars?RA=10&DEC=-5&SR=180&VERB=1&RESPONSEFORMAT=csv").await;
    assert_eq!(least.text().lines().next(), Some("id,ra,dec"));
}

#[tokio::test]
async fn a_radius_of_zero_asks_for_the_columns() {
    let answer = Door::new().get("/scs/demo.stars?RA=10&DEC=-5&SR=0").await;
    assert_eq!((answer.status, answer.text().matches("<TR>").count()), (200, 0));
    assert_eq!(answer.xml().all("FIELD").len(), 4);
}

#[tokio::test]
async fn rows_are_bounded_here_too() {
    let answer = Door::new().get("/scs/demo.stars?RA=10&DEC=-5&SR=180&MAXREC=2").await;
    assert_eq!(
        (answer.text().matches("<TR>").count(), answer.statuses()),
        (2, vec!["OK".into(), "OVERFLOW".into()])
    );
}

#[tokio::test]
async fn mistakes_are_errors_of_cone_search() {
    let door = Door::new();
    for (path, status) in [
        ("/scs/demo.stars?RA=10&DEC=-5", 400),
        ("/scs/demo.stars?RA=x&DEC=-5&SR=1", 400),
        ("/scs/demo.stars?RA=10&DEC=-5&SR=1&RESPONSEFORMAT=x", 400),
        ("/scs/demo.many?RA=10&DEC=-5&SR=1", 404),
        ("/scs/demo.nothing?RA=10&DEC=-5&SR=1", 404),
    ] {
        let answer = door.get(path).await;
        assert_eq!((answer.status, answer.header("content-type")), (status, "text/xml"), "{path}");
        let infos = answer.xml().all("INFO");
        assert!(
            infos.iter().any(|info| info.get("name") == "Error" && !info.get("value").is_empty()),
            "{path}"
        );
    }
}
