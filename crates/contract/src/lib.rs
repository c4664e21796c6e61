//! Nouns: units, ids, the parsed contract and ledger records; reading contract files, fail closed.
