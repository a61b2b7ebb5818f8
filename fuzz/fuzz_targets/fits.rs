#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trifid_archive_model::fuzz::fits(data));
