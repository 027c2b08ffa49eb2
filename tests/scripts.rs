//! What the scripts say when something is missing, and what those that make a release make.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A path that nothing is at, for a script to make.
fn fresh(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        fs::remove_dir_all(&path).expect("the directory of an earlier run can be deleted");
    }
    path
}

fn pg_config(option: &str) -> String {
    let program = std::env::var("PG_CONFIG").unwrap_or_else(|_| "pg_config".to_owned());
    stdout(Command::new(program).arg(option)).trim().to_owned()
}

/// What a command that must succeed prints.
fn stdout(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a command that must fail says.
fn refusal(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(!output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stderr).expect("the output is UTF-8")
}

fn script(name: &str) -> Command {
    Command::new(root().join("scripts").join(name))
}

/// A make of its own: one that runs the tests may have been given variables, which it would hand
/// on.
fn make() -> Command {
    let mut make = Command::new("make");
    for inherited in ["MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL"] {
        make.env_remove(inherited);
    }
    make.current_dir(root());
    make
}

/// Makes a script that can be executed.
fn write_script(path: &Path, text: &str) {
    fs::write(path, text).expect("a script can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .expect("a script can be made executable");
}

/// Runs a script where a package is not installed, whatever this machine has.
fn without_package(script: &str, arguments: &[&str], package: &str) -> Output {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("without-{package}"));
    fs::create_dir_all(&directory).expect("a directory can be made");
    let query = directory.join("dpkg-query");
    let answer =
        format!("#!/bin/sh\ncase \"$*\" in *' {package}') exit 1 ;; esac\necho installed 1\n");
    write_script(&query, &answer);
    let path =
        format!("{}:{}", directory.display(), std::env::var("PATH").expect("there is a PATH"));
    let mut command = self::script(script);
    command
        .args(arguments)
        .env("PATH", path)
        .env("MATRIX_DIR", directory.join("matrix"));
    command.output().expect("the script runs")
}

#[test]
fn building_postgresql_says_what_is_missing_and_what_installs_it() {
    for package in ["flex", "libicu-dev", "debian-archive-keyring"] {
        let output = without_package("matrix", &["build", "18"], package);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{said}");
        assert!(said.contains(&format!("these packages are missing: {package}\n")), "{said}");
        assert!(said.contains("run scripts/setup matrix, which installs"), "{said}");
    }
}

/// Who measures, fuzzes or lints is told what to install, and nothing is installed meanwhile.
#[test]
fn make_says_what_to_install() {
    let hidden = ["apt-get", "cargo", "clang", "rust", "shellcheck", "sudo"];
    let directory = without_programs("without-programs", &hidden);
    for installer in ["apt-get", "sudo"] {
        write_script(&directory.join(installer), "#!/bin/sh\necho \"$0 was called\"\n");
    }
    for (target, needs) in [
        ("bench", "scripts/setup hll locale redisbloom,"),
        ("bench ONLY=core", "scripts/setup,"),
        ("fuzz", "scripts/setup,"),
        ("soak", "scripts/setup,"),
        ("lint", "scripts/setup lint,"),
    ] {
        let mut make = make();
        make.args(target.split(' '));
        make.env("PATH", &directory)
            .env("HOME", &directory)
            .env_remove("CARGO_HOME");
        make.env("PG_CONFIG", format!("{}/pg_config", pg_config("--bindir")));
        let output = make.output().expect("make runs");
        let (said, printed) = (text(&output.stderr), text(&output.stdout));
        assert!(!output.status.success(), "{target}: {said}");
        let packages = said
            .lines()
            .find(|line| line.contains("these packages are missing: "));
        let packages = packages.unwrap_or_else(|| panic!("{target}: {said}"));
        assert!(packages.contains(" clang"), "{target}: {said}");
        assert_eq!(packages.contains(" shellcheck"), target == "lint", "{target}: {said}");
        assert!(said.contains("this is missing: Rust 1."), "{target}: {said}");
        assert!(said.contains(&format!("run {needs} which installs")), "{target}: {said}");
        assert!(!printed.contains("was called"), "{target} installs: {printed}");
        assert!(!printed.contains("cargo"), "{target} goes on: {printed}");
    }
}

#[test]
fn without_citus_the_script_says_where_to_get_it() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/citus");
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR")).join("without-citus");
    fs::create_dir_all(&empty).expect("a directory can be made");
    for directory in [None, Some(&empty)] {
        let mut command = Command::new(&script);
        command
            .env_remove("CITUS_DIR")
            .envs(directory.map(|directory| ("CITUS_DIR", directory)));
        let output = command.output().expect("the script runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("https://github.com/citusdata/citus"), "{said}");
        assert!(said.contains("/citus.so"), "{said}");
        assert!(output.stdout.is_empty(), "it went on");
    }
}

/// A directory with every program of the system's whose name begins with none of these, as a
/// machine without them has.
fn without_programs(name: &str, hidden: &[&str]) -> PathBuf {
    let directory = fresh(name);
    fs::create_dir_all(&directory).expect("a directory can be made");
    for entry in ["/bin", "/usr/bin"]
        .iter()
        .flat_map(|system| fs::read_dir(system).expect("it can be read"))
    {
        let program = entry.expect("it can be read");
        let (name, link) = (program.file_name(), directory.join(program.file_name()));
        if !hidden.iter().any(|of| name.to_string_lossy().starts_with(of)) && !link.is_symlink() {
            std::os::unix::fs::symlink(program.path(), link).expect("a link can be made");
        }
    }
    directory
}

/// Without rustup the first cargo in the path is taken, and has to be new enough. With rustup it is
/// rustup's, wherever that is.
#[test]
fn make_finds_a_rust_that_is_new_enough_or_says_which_is_needed() {
    let directory = without_programs("old-rust", &["cargo", "rust"]);
    let wanted = env!("CARGO_PKG_RUST_VERSION");
    let isolated = |mut command: Command| {
        command
            .env("PATH", &directory)
            .env("HOME", &directory)
            .env_remove("CARGO_HOME")
            .env_remove("RUSTUP_TOOLCHAIN");
        command
    };
    let make = || {
        let mut make = isolated(make());
        make.env("PROFILE", "dev");
        make.env("PG_CONFIG", format!("{}/pg_config", pg_config("--bindir")));
        make
    };
    let cargo = || isolated(script("cargo"));

    let said = refusal(&mut make());
    assert!(said.contains(&format!("there is no cargo; {wanted} or later is needed\n")), "{said}");

    let old = "#!/bin/sh\necho 'cargo 1.63.0'\n";
    write_script(&directory.join("cargo"), old);
    let said = refusal(&mut make());
    assert!(
        said.contains(&format!("Rust 1.63.0 is too old; {wanted} or later is needed\n")),
        "{said}"
    );

    // rustup's, which is in no path: its cargo follows rust-toolchain.toml where it runs.
    let home = directory.join(".cargo/bin");
    fs::create_dir_all(&home).expect("a directory can be made");
    write_script(&home.join("rustup"), "#!/bin/sh\n");
    let new = "#!/bin/sh\necho \"cargo 1.1000.0 $1\"\n";
    write_script(&home.join("cargo"), new);
    assert_eq!(stdout(cargo().arg("frob")), "cargo 1.1000.0 frob\n");
    assert_eq!(stdout(cargo().arg("--which")).trim(), home.join("cargo").to_string_lossy());

    // rustup can't bring the version: the system's cargo is taken, if that is new enough.
    write_script(&home.join("cargo"), "#!/bin/sh\nexit 1\n");
    let said = refusal(cargo().arg("frob"));
    assert!(said.contains("Rust 1.63.0 is too old"), "{said}");
    write_script(&directory.join("cargo"), new);
    assert_eq!(stdout(cargo().arg("frob")), "cargo 1.1000.0 frob\n");
}

/// Cargo doesn't: what was read from the headers of the old version would be used for the new one.
#[test]
fn make_notices_a_new_minor_version_of_postgresql() {
    let directory = fresh("minor-version");
    fs::create_dir_all(directory.join("target/release")).expect("a directory can be made");
    let log = directory.join("log");
    let cargo = format!(
        "#!/bin/sh\ncase $1 in --version) echo cargo 99.0.0;; metadata) exit 1;; *) echo $1 >>{};; esac\n\
         case $1 in build) touch {}/target/release/libpg_bloom.so;; esac\n",
        log.display(),
        directory.display()
    );
    write_script(&directory.join("cargo"), &cargo);
    let did = |version: &str| {
        write_script(
            &directory.join("pg_config"),
            &format!("#!/bin/sh\necho 'PostgreSQL {version}'\n"),
        );
        let path = format!("{}:/usr/bin:/bin", directory.display());
        let mut make = make();
        make.env("PATH", path).env("PG_CONFIG", directory.join("pg_config"));
        // No rustup is there, whose cargo would be taken.
        make.env("HOME", &directory).env_remove("CARGO_HOME");
        stdout(
            make.env("PROFILE", "release")
                .env("CARGO_TARGET_DIR", directory.join("target")),
        );
        let commands = fs::read_to_string(&log).expect("cargo was called");
        fs::remove_file(&log).expect("the log can be deleted");
        commands
    };
    assert_eq!(did("15.19 (Debian 15.19-1)"), "build\n");
    assert_eq!(did("15.19 (Debian 15.19-1)"), "build\n");
    assert_eq!(did("15.20 (Debian 15.20-1)"), "clean\nbuild\n");
    assert_eq!(did("15.20 (Debian 15.20-1)"), "build\n");
}

/// A package has a stripped library and needs the minor version that it was built for;
/// scripts/check-deb tries it, and notices what is wrong with one.
#[test]
fn a_package_works_and_needs_its_minor_version() {
    let directory = fresh("package");
    let mut deb = script("deb");
    deb.arg(&directory);
    let library = pg_config("--pkglibdir");
    if !library.starts_with("/usr/lib/postgresql/") {
        let said = refusal(&mut deb);
        assert!(said.contains("is not one of Debian's"), "{said}");
        return;
    }
    stdout(&mut deb);
    let entries = fs::read_dir(&directory).expect("the directory was made");
    let packages: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the directory can be read").path())
        .collect();
    let [package] = &packages[..] else {
        panic!("{packages:?}")
    };

    let version = pg_config("--version");
    let minor = version.split(' ').nth(1).expect("PostgreSQL has a version");
    let major = minor.split('.').next().expect("a split has a first part");
    let depends = stdout(Command::new("dpkg-deb").arg("--field").arg(package).arg("Depends"));
    if !minor.contains(char::is_alphabetic) {
        assert!(depends.contains(&format!("postgresql-{major} (>= {minor}), ")), "{depends}");
    }

    let said = stdout(script("check-deb").arg("--unpack").arg(package));
    for answer in [
        "lead somewhere",
        "CREATE EXTENSION",
        "no false negative",
        "finds a row",
        "bloom_set_create",
    ] {
        assert!(said.contains(answer), "{answer}: {said}");
    }

    // Without a document that others link to, and for a minor version that nobody has.
    let unpacked = directory.join("unpacked");
    stdout(Command::new("dpkg-deb").arg("-R").arg(package).arg(&unpacked));
    let object = fs::read(unpacked.join(&library[1..]).join("pg_bloom.so"))
        .expect("the library is in the package");
    assert!(!object.windows(8).any(|bytes| bytes == b".symtab\0"), "the library has its symbols");
    let repack = |name: &str| {
        let to = directory.join(name);
        stdout(
            Command::new("dpkg-deb")
                .args(["--root-owner-group", "-Znone", "-b"])
                .arg(&unpacked)
                .arg(&to),
        );
        refusal(script("check-deb").arg("--unpack").arg(to))
    };
    let documents = unpacked.join(format!("usr/share/doc/postgresql-{major}-pg-bloom"));
    fs::rename(documents.join("docs/sizing.md"), directory.join("sizing.md"))
        .expect("the page is there");
    let said = repack("broken.deb");
    assert!(said.contains("lead nowhere") && said.contains("README.md: docs/sizing.md"), "{said}");
    fs::rename(directory.join("sizing.md"), documents.join("docs/sizing.md"))
        .expect("a file can be moved back");
    let control = unpacked.join("DEBIAN/control");
    let fields = fs::read_to_string(&control).expect("a package has a control file");
    let newer = format!("(>= {major}.9999)");
    fs::write(&control, fields.replace(&format!("(>= {minor})"), &newer))
        .expect("the control file can be written");
    let said = repack("newer.deb");
    assert!(
        said.contains(&format!("needs PostgreSQL {major}.9999, and this is {minor}")),
        "{said}"
    );
    fs::write(&control, fields.replace(&format!(" (>= {minor})"), ""))
        .expect("the control file can be written");
    let said = repack("any.deb");
    assert!(said.contains("does not name the minor version that it needs"), "{said}");
}

/// A library is installed without its symbols, except where they are asked for.
#[test]
fn make_install_keeps_symbols_only_when_told_to() {
    let size = |keep: &str| {
        let directory = fresh(&format!("symbols-{keep}"));
        let mut make = make();
        make.args(["--silent", "install", &format!("KEEP_SYMBOLS={keep}")]);
        stdout(make.arg(format!("DESTDIR={}", directory.display())));
        let library = directory.join(&pg_config("--pkglibdir")[1..]).join("pg_bloom.so");
        fs::metadata(library).expect("the library was installed").len()
    };
    assert!(size("") * 2 < size("yes"));
}

#[test]
fn only_the_tag_of_the_version_is_released() {
    let said = refusal(script("release").arg("v0.0.1"));
    assert!(
        said.contains(concat!("that of this version is v", env!("CARGO_PKG_VERSION"))),
        "{said}"
    );
}

/// The scripts that text names.
fn scripts(text: &str) -> Vec<&str> {
    let names = text.split("scripts/").skip(1);
    names
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next())
        .collect()
}

/// Continuous integration has its steps in one place: the workflow names those of `.ci/run`.
#[test]
fn workflows_run_steps_of_continuous_integration() {
    let workflow =
        fs::read_to_string(root().join(".github/workflows/ci.yml")).expect("the workflow is there");
    let runs = workflow.split(".ci/run ").skip(1);
    let steps: Vec<&str> = runs.filter_map(|rest| rest.lines().next()).collect();
    assert_eq!(steps.len(), 3, "{steps:?}");
    let script = fs::read_to_string(root().join(".ci/run")).expect("the script is there");
    for step in steps {
        assert!(script.contains(&format!("\nrun_{step}() {{")), "there is no step {step}");
    }
    assert!(!workflow.contains("make "), "a step that .ci/run doesn't have");
    let said = refusal(Command::new(root().join(".ci/run")).arg("frob"));
    assert!(said.contains("there is no step frob"), "{said}");
}

#[test]
fn workflows_call_scripts_that_are_there() {
    for (workflow, called) in [
        ("ci.yml", &["setup"][..]),
        ("release.yml", &["check-deb", "deb", "image", "release", "sbom", "setup"]),
    ] {
        let text = fs::read_to_string(root().join(".github/workflows").join(workflow))
            .expect("the workflow is there");
        let mut names = scripts(&text);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names, called, "{workflow}");
        for name in names {
            let script = fs::metadata(root().join("scripts").join(name)).expect(name);
            assert!(script.permissions().mode() & 0o111 != 0, "{name} can't be executed");
        }
    }
}

/// A release has every file whose checksum `scripts/release` writes.
#[test]
fn what_has_a_checksum_is_released() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("the file is there");
    let release = read("scripts/release");
    let sums = release
        .lines()
        .find(|line| line.starts_with("sha256sum "))
        .expect("checksums are written");
    let endings: Vec<&str> = sums
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("./*"))
        .collect();
    assert!(endings.len() >= 6, "{sums}");

    let workflow = read(".github/workflows/release.yml");
    let (_, released) = workflow.split_once("gh release create").expect("a release is made");
    for ending in endings {
        let is_released = released
            .split_whitespace()
            .any(|file| file.starts_with("packages/") && file.ends_with(ending));
        assert!(is_released, "*{ending} has a checksum, and is not released");
    }
}
