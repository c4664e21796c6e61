//! endpoints.tsv: whatever the bytes, endpoints or an error that names the file; ids are unique and found again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match ledger::endpoints::Endpoints::parse(bytes, "endpoints.tsv") {
        Ok(read) => {
            let index = read.index();
            for (at, endpoint) in read.list.iter().enumerate() {
                let place = index
                    .place(endpoint.id.as_bytes())
                    .expect("an endpoint that was read is found");
                assert_eq!(usize::try_from(place), Ok(at));
                assert!(
                    endpoint.max_attempts >= 1
                        && endpoint.backoff_base_s >= 0
                        && endpoint.dispatch_gap_s >= 0
                );
            }
        }
        Err(error) => assert!(error.to_string().contains("endpoints.tsv")),
    }
});
