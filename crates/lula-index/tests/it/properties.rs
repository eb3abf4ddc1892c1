//! What holds for any project and any bytes.

use lula_index::{IndexLanguage, MapQuery, SymbolIndex, estimate, tags};
use proptest::prelude::*;

use crate::project::Project;

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "load_file",
        "save_file",
        "Parser",
        "Money",
        "get",
        "run_all",
        "x",
        "_private",
        "apply_tax",
    ])
    .prop_map(str::to_owned)
}

fn python() -> impl Strategy<Value = String> {
    let item = prop_oneof![
        name().prop_map(|name| format!("def {name}(a, b):\n    return a\n\n")),
        (name(), name()).prop_map(|(class, method)| format!(
            "class {class}:\n    def {method}(self):\n        pass\n\n"
        )),
        name().prop_map(|name| format!("value = {name}(1)\n")),
        "[ -~\n]{0,30}",
    ];
    prop::collection::vec(item, 0..6).prop_map(|items| items.concat())
}

fn files() -> impl Strategy<Value = Vec<(String, String)>> {
    let path = (
        "[a-d]{1,2}",
        prop::sample::select(vec!["py", "rs", "ts", "md"]),
    )
        .prop_map(|(stem, ending)| format!("src/{stem}.{ending}"));
    prop::collection::vec((path, python()), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_lead_to_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        for language in IndexLanguage::ALL {
            let _ = tags(language, &bytes);
        }
        prop_assert!(SymbolIndex::from_bytes(&bytes).is_none());
    }

    #[test]
    fn a_map_never_exceeds_its_budget(files in files(), task in "[ -~]{0,40}", budget in 0_u64..200) {
        let map = Project::new(files).map(&task, budget);
        prop_assert!(estimate(&map.text) <= budget);
        prop_assert_eq!(estimate(&map.text), map.tokens);
    }

    #[test]
    fn a_larger_budget_shows_no_less(files in files(), budget in 0_u64..100) {
        let project = Project::new(files);
        let shown = |budget| {
            let map = project.map("", budget);
            map.files.iter().map(|file| 1 + file.symbols.len()).sum::<usize>()
        };
        prop_assert!(shown(budget) <= shown(budget + 50));
    }

    #[test]
    fn the_map_depends_on_the_files_and_not_on_how_they_came_to_be_known(
        old in files(), new in files(), task in "[a-zA-Z_ ]{0,20}"
    ) {
        let mut project = Project::new(old.clone());
        let mut index = project.index();
        for (path, _) in &old {
            project.remove(path);
        }
        for (path, text) in &new {
            project.write(path, text.as_bytes());
        }
        project.update(&mut index);
        let kept = SymbolIndex::from_bytes(&index.to_bytes()).unwrap();
        let task = MapQuery { text: task, ..MapQuery::default() };
        let fresh = Project::new(new).index().map(&task, 80, &estimate);
        prop_assert_eq!(&index.map(&task, 80, &estimate), &fresh);
        prop_assert_eq!(&kept.map(&task, 80, &estimate), &fresh);
    }

    #[test]
    fn a_file_that_has_to_do_with_nothing_leaves_the_order_of_the_rest(files in files()) {
        let before = Project::new(files.clone()).map("", u64::MAX);
        let mut project = Project::new(files);
        project.write("zz/unrelated.go", b"package unrelated\n\nfunc Alone() {}\n");
        let after = project.map("", u64::MAX);
        let paths = |map: &lula_index::ProjectMap| -> Vec<String> {
            map.files.iter().map(|file| file.path.clone()).collect()
        };
        let mut expected = paths(&before);
        expected.push("zz/unrelated.go".to_owned());
        prop_assert_eq!(paths(&after), expected);
        prop_assert!(after.text.starts_with(&before.text));
    }
}
