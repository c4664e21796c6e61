//! The judge: re-derives every decision from contract and ledger, and never sees the scheduler.
