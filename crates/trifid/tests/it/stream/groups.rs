//! Consumer groups by the commands of the door: shared, remembered, put elsewhere, deleted.

use super::Door;

fn lines(from: u32, to: u32) -> String {
    (from..to).map(|number| format!("{number}\n")).collect()
}

#[test]
fn a_group_goes_on_where_it_was() {
    let door = Door::open();
    door.hand(&["create", "work"]);
    door.publish(&["work"], &lines(0, 20));
    let take = |count: &str| {
        door.hand(&[
            "consume", "work", "--group", "crew", "--from", "earliest", "--count", count, "--format", "value",
        ])
    };
    assert_eq!(take("12"), lines(0, 12));
    assert_eq!(take("8"), lines(12, 20));
    assert!(door.hand(&["group", "list"]).starts_with("crew\tempty\t0 members"));
    assert!(door.hand(&["group", "describe", "crew"]).contains("work\t0\t20\t20\t0\n"));

    let door = Door::on(door.close(), &[]);
    door.publish(&["work"], &lines(20, 25));
    assert!(door.hand(&["group", "describe", "crew"]).contains("work\t0\t20\t25\t5\n"));
    let take = |more: &[&str]| {
        door.hand(&[&["consume", "work", "--group", "crew", "--format", "value"], more].concat())
    };
    assert_eq!(take(&["--count", "5"]), lines(20, 25));
    assert_eq!(take(&["--idle", "50ms"]), "");
    assert_eq!(door.hand(&["group", "reset", "crew", "work", "--to", "23"]), "work\t0\t23\n");
    assert_eq!(take(&["--count", "2"]), lines(23, 25));
    assert_eq!(door.hand(&["group", "delete", "crew"]), "crew is gone\n");
    door.run(&["group", "describe", "crew"]).refused("crew");
    door.close();
}

#[test]
fn two_members_share_the_records() {
    let door = Door::open();
    door.hand(&["create", "shared", "--shards", "4"]);
    let server = format!("tls://localhost:{}", door.native.port());
    let member = |name: &str| {
        let out = std::fs::File::create(door.trifid.folder.path().join(name)).unwrap();
        let group = ["stream", "consume", "shared", "--group", "pair", "--from", "earliest", "--idle", "2s"];
        door.trifid
            .command(&[&group[..], &["--format", "value", "--server", &server]].concat())
            .stdout(out)
            .spawn()
            .unwrap()
    };
    let mut members = [member("one"), member("two")];
    let keyed: String = (0..200).map(|number| format!("k{number}:{number}\n")).collect();
    door.publish(&["shared", "--key-separator", ":"], &keyed);
    for member in &mut members {
        assert!(member.wait().unwrap().success());
    }
    let read = |name: &str| std::fs::read_to_string(door.trifid.folder.path().join(name)).unwrap();
    let mut all: Vec<u32> = (read("one") + &read("two")).lines().map(|line| line.parse().unwrap()).collect();
    all.sort_unstable();
    assert_eq!(all, (0..200).collect::<Vec<_>>());
    door.close();
}
