//! A type has one name in both crates, and a name one type: a reader who meets `Run` need not ask
//! which.

use super::CRATES;
use std::collections::BTreeMap;
use std::fs;
use syn::visit::Visit;

/// Names that several rooms use for their own form of one idea, and what that is.
const SIBLINGS: [(&str, &str); 4] = [
    ("Error", "what each crate fails with"),
    ("Result", "a result with the crate's error"),
    ("Build", "the build of each kind of index"),
    ("Directory", "where the tiles of each kind of index are"),
];

/// The names of the types that a file declares.
#[derive(Default)]
struct TypeNames(Vec<String>);

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.0.push(item.ident.to_string());
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.0.push(item.ident.to_string());
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.0.push(item.ident.to_string());
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.0.push(item.ident.to_string());
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.0.push(item.ident.to_string());
    }
}

/// Returns the files of both crates that declare a type, for each name of a type.
fn files_by_type_name() -> BTreeMap<String, Vec<String>> {
    let mut files_by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for code in CRATES.values() {
        for path in code.files.values() {
            let text = fs::read_to_string(path).expect("a file can be read");
            let file = syn::parse_file(&text).expect("a file is Rust");
            let mut names = TypeNames::default();
            names.visit_file(&file);

            let shown_path = path.display().to_string();
            for name in names.0 {
                files_by_name.entry(name).or_default().push(shown_path.clone());
            }
        }
    }
    files_by_name
}

#[test]
fn type_names_are_unique() {
    let files_by_name = files_by_type_name();
    assert!(files_by_name.len() > 200, "{} names were found", files_by_name.len());

    let mut repeated = files_by_name;
    repeated.retain(|name, files| {
        let is_sibling = SIBLINGS.iter().any(|(sibling, _)| *sibling == name);
        files.len() > 1 && !is_sibling
    });
    assert!(repeated.is_empty(), "several types have one name: {repeated:#?}");
}

#[test]
fn siblings_share_their_names() {
    let files_by_name = files_by_type_name();
    let siblings = SIBLINGS.iter().map(|(name, _)| name);
    for name in siblings {
        let is_shared = files_by_name.get(*name).is_some_and(|files| files.len() > 1);
        assert!(is_shared, "{name} is the name of at most one type: take it off the list");
    }
}
