#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trifid_stream_kafka::fuzz::requests(bytes));
