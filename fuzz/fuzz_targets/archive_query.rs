#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trifid_archive_engine::fuzz::query(bytes));
