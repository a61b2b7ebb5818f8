//! `trifid token hash`.

use crate::harness::Trifid;

#[test]
fn a_token_becomes_its_line() {
    let arguments = ["token", "hash", "--tenant", "city", "--role", "write", "--name", "feeder"];
    let said = Trifid::new().run_with(&arguments, "abc\n");
    // SHA-256 of "abc", FIPS 180-2 appendix B.1.
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(said.out, format!("{digest} city write feeder\n"));
}

#[test]
fn a_generated_token_is_shown_once_and_hashes_to_its_line() {
    let trifid = Trifid::new();
    let made = trifid.run(&["token", "hash", "--generate"]);
    assert_eq!(made.err.trim().len(), 64);
    assert!(!made.out.contains(made.err.trim()));
    assert_eq!(trifid.run_with(&["token", "hash"], &made.err).out, made.out);
}

#[test]
fn an_empty_token_is_refused() {
    let said = Trifid::new().run_with(&["token", "hash"], "\n");
    assert_eq!((said.code, said.err.as_str()), (Some(1), "error: standard input holds no token\n"));
}
