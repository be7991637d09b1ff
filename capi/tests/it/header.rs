//! The committed header is what cbindgen makes of the sources.

use std::path::Path;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn generated() -> String {
    let root = Path::new(ROOT);
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let builder = cbindgen::Builder::new().with_config(config);
    let builder = builder.with_src(root.join("src/types.rs")).with_src(root.join("src/border.rs"));
    let mut text = Vec::new();
    builder.generate().expect("sources that parse").write(&mut text);
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn the_header_is_that_of_the_sources() {
    let file = Path::new(ROOT).join("include/planlab.h");
    if std::env::var_os("PLANLAB_BLESS").is_some() {
        std::fs::write(&file, generated()).expect("writable");
    }
    let committed = std::fs::read_to_string(&file).expect("the header is committed");
    assert!(
        committed == generated(),
        "include/planlab.h is not that of the sources; \
         `PLANLAB_BLESS=1 cargo test --package planlab-capi --test it -- header` writes it"
    );
}
