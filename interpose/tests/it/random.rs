//! Random calls of several threads, which the program itself checks against a model.

use crate::common::{Ran, under};

fn run(seed: u64, threads: u64, settings: &[(&str, &str)]) -> Ran {
    let words = [seed, threads, 1000].map(|number| number.to_string());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = under("random", &words, settings);
    assert_eq!(ran.stdout, "ok\n", "seed {seed}, {threads} threads");
    ran
}

#[test]
fn random_calls_of_several_threads_agree_with_the_model() {
    let seeds = if std::env::var_os("PLANLAB_TEST_DEEP").is_some() { 400 } else { 4 };
    let mut planned = 0;
    for seed in 0..seeds {
        let threads = 1 + seed % 4;
        let checks = if seed % 2 == 1 { "1" } else { "0" };
        let marks =
            [("PLANLAB_CHECK", checks), ("PLANLAB_MIN_SIZE", if seed % 3 == 2 { "1000" } else { "4096" })];
        let ran = run(seed, threads, &marks);
        assert_eq!(ran.count("wrong_frees"), 0, "seed {seed}");
        planned += ran.count("planned");
    }
    assert!(planned > 0, "plans were made and followed");
}
