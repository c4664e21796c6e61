//! I6: a duration, an instant and a count cannot be mixed. Each file must fail to compile, for the reason beside it.

#[test]
fn units_cannot_be_mixed() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/compile-fail/*.rs");
}
