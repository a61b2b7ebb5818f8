#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trifid_stream_engine::fuzz::stored(data));
