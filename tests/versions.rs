//! The version of the extension, and that of Rust, are the same wherever they are written.

use std::path::Path;

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What stands between two strings, wherever they are.
fn between(text: &str, before: &str, after: &str) -> Vec<String> {
    let parts = text.split(before).skip(1);
    parts
        .map(|part| part.split(after).next().expect("a split has a first part").to_owned())
        .collect()
}

#[test]
fn versions_agree() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(between(&read("Cargo.toml"), "\nversion = \"", "\""), [version]);
    let root_manifest = read("Cargo.toml");
    let members = between(&root_manifest, "\nmembers = [", "]");
    let members = between(&members[0], "\"", "\"");
    // Every second piece between two quotes is a comma.
    let manifests: Vec<String> = members
        .iter()
        .step_by(2)
        .map(|directory| format!("{directory}/Cargo.toml"))
        .collect();
    assert!(manifests.len() > 5, "{manifests:?}");
    for manifest in &manifests {
        let text = read(manifest);
        assert!(text.contains("\nversion.workspace = true\n"), "{manifest}");
        let name = &between(&text, "\nname = \"", "\"")[0];
        let locked =
            between(&read("Cargo.lock"), &format!("name = \"{name}\"\nversion = \""), "\"");
        assert_eq!(locked, [version], "{name} in Cargo.lock");
    }
    // The fuzz targets are a workspace of their own, which has a lock of its own.
    assert_eq!(between(&read("core/fuzz/libfuzzer/Cargo.toml"), "\nversion = \"", "\""), [version]);
    let lock = read("core/fuzz/libfuzzer/Cargo.lock");
    for name in ["pg_bloom_core", "pg_bloom_fuzz", "pg_bloom_libfuzzer"] {
        let locked = between(&lock, &format!("name = \"{name}\"\nversion = \""), "\"");
        assert_eq!(locked, [version], "{name} in core/fuzz/libfuzzer/Cargo.lock");
    }
    // The Python package has the version of its crate.
    let python = read("python/pyproject.toml");
    assert!(python.contains("\ndynamic = [\"version\""), "python/pyproject.toml");
    assert_eq!(between(&read("js/package.json"), "\n  \"version\": \"", "\""), [version]);
    // The lock has the version of the whole, and of the package at its root.
    let lock = read("js/package-lock.json");
    for indentation in ["\n  ", "\n      "] {
        let before = format!("\"name\": \"pg-bloom\",{indentation}\"version\": \"");
        assert_eq!(between(&lock, &before, "\""), [version], "js/package-lock.json");
    }
    assert_eq!(between(&read("pg_bloom.control"), "\ndefault_version = '", "'"), [version]);
    // Those of the distribution, of the extension that it provides, and of the specification.
    assert_eq!(between(&read("META.json"), "\"version\": \"", "\""), [version, version, "1.0.0"]);
    assert_eq!(
        between(&read("docs/cloudnativepg.yaml"), "/pg_bloom-extension:", "-pg"),
        [version, version]
    );
    let questions = read("docs/faq.md");
    assert_eq!(between(&questions, "The tag `", "-pg"), [version]);
    assert_eq!(
        between(&questions, "reference: ghcr.io/OWNER/pg_bloom-extension:", "-pg"),
        [version]
    );
    assert_eq!(between(&read("docs/reference.md"), "/pg_bloom--", ".sql"), [version]);
    let changes = read("CHANGELOG.md");
    let heading = changes.lines().next().expect("there are changes");
    assert!(
        heading
            .strip_prefix(&format!("## {version} ("))
            .is_some_and(|date| date.ends_with(')')),
        "CHANGELOG.md begins with {heading:?}, not with version {version}"
    );
}

/// rustup brings the version of `rust-toolchain.toml`, also for the Python package's sources, and a
/// workflow that names none.
#[test]
fn versions_of_rust_agree() {
    let wanted = [env!("CARGO_PKG_RUST_VERSION")];
    assert_eq!(between(&read("Dockerfile"), "\nARG RUST_VERSION=", "\n"), wanted);
    assert_eq!(
        between(&read("core/fuzz/libfuzzer/Cargo.toml"), "\nrust-version = \"", "\""),
        wanted
    );
    for file in ["rust-toolchain.toml", "python/rust-toolchain.toml"] {
        assert_eq!(between(&read(file), "\nchannel = \"", "\""), wanted, "{file}");
    }
    for workflow in ["ci.yml", "release.yml"] {
        let text = read(&format!(".github/workflows/{workflow}"));
        assert!(text.contains("rustup toolchain install\n"), "{workflow} installs no Rust");
        assert!(!text.contains("rustup default"), "{workflow} names a version of Rust");
        for toolchain in between(&text, "--default-toolchain ", "\n") {
            assert_eq!(toolchain, "none", "{workflow}");
        }
    }
}

/// A new version without a way to get there could not be installed over an old one.
#[test]
fn upgrade_scripts_end_at_the_version() {
    let mut scripts = Vec::new();
    for entry in
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("sql")).expect("sql is there")
    {
        let name = entry
            .expect("the entry can be read")
            .file_name()
            .into_string()
            .expect("the name is UTF-8");
        scripts.extend(
            name.strip_prefix("pg_bloom--")
                .and_then(|rest| rest.strip_suffix(".sql"))
                .map(str::to_owned),
        );
    }
    let releases = read("CHANGELOG.md")
        .lines()
        .filter(|line| line.starts_with("## "))
        .count();
    let ends: Vec<&String> = scripts
        .iter()
        .filter(|script| script.ends_with(concat!("--", env!("CARGO_PKG_VERSION"))))
        .collect();
    assert_eq!(
        ends.is_empty(),
        releases == 1,
        "{releases} releases and upgrade scripts {scripts:?}"
    );
}
