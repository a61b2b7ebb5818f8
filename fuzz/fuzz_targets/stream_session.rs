#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trifid_stream_face::fuzz::session(data));
