//! The command line where something is missing or misspelt: nothing is made,
//! nothing is changed, and one sentence says what to do.

use std::net::TcpListener;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::database::Database;
use crate::gateway::{Folder, Gateway, PATIENCE, ask, message, toolyard};

/// Runs a command that must fail; answers what it said.
fn no(folder: &Folder, env: &[(&str, &str)], args: &[&str]) -> String {
    let Output { status, stdout, stderr } =
        toolyard(folder.path()).args(args).envs(env.iter().copied()).stdin(Stdio::null()).output().unwrap();
    let (out, text) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr).into_owned());
    assert_eq!(status.code(), Some(1), "{args:?}: {out}{text}");
    text
}

/// An address where nobody listens.
fn nobody() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn commands_that_look_make_no_folder_and_say_where_they_looked() {
    let folder = Folder::new();
    let (data, address) = (folder.path().join("data"), nobody());
    let env = [("TOOLYARD_LISTEN", address.as_str())];
    let said = format!(
        "toolyard: no gateway runs at http://{address}, and there is no data in {}: start one with `toolyard serve`, or name another with --url or --data\n",
        data.display()
    );
    for args in [
        &["run", "list"][..],
        &["run", "show", "run_x"],
        &["run", "cancel", "run_x"],
        &["run", "replay", "run_x"],
        &["agent", "list"],
        &["agent", "show", "helper"],
        &["agent", "delete", "helper"],
        &["key", "list"],
        &["key", "revoke", "key_x"],
        &["plugin", "list"],
        &["plugin", "uninstall", "some-plugin"],
        &["plugin", "revoke", "--plugin", "some-plugin", "--reason", "bad"],
        &["tenant", "delete", "acme", "--yes"],
        &["backup", "copy.db"],
    ] {
        assert_eq!(no(&folder, &env, args), said, "{args:?}");
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert!(left.is_empty(), "{args:?} left {left:?}");
    }
    // The doctor finds it, beside what else it finds.
    let output = toolyard(folder.path()).args(["doctor", "--json"]).envs(env).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &found["ok"]), (Some(1), &json!(false)));
    let checks = found["checks"].as_array().unwrap();
    let database = checks.iter().find(|check| check["check"] == "database").unwrap();
    assert_eq!(format!("toolyard: {}\n", database["says"].as_str().unwrap()), said);
    for args in [["config", "check"], ["config", "print"], ["config", "schema"]] {
        assert!(toolyard(folder.path()).args(args).envs(env).output().unwrap().status.success());
    }
    assert!(!data.exists());
}

#[tokio::test]
async fn a_gateway_whose_folder_is_another_is_pointed_at() {
    let gateway = Gateway::start().await;
    let elsewhere = Folder::new();
    let env = [("TOOLYARD_LISTEN", gateway.url.strip_prefix("http://").unwrap())];
    let said = no(&elsewhere, &env, &["run", "list"]);
    assert!(
        said.contains("there is no data in") && said.contains("--data") && said.contains("--url"),
        "{said}"
    );
    assert!(said.contains(&gateway.url), "{said}");
    let said = no(&elsewhere, &[], &["run", "list", "--url", &format!("http://{}", nobody())]);
    assert!(said.contains("Connection refused"), "{said}");
    let keyless = [("TOOLYARD_SECRET_KEY", "")];
    assert!(
        no(&elsewhere, &keyless, &["run", "list", "--url", "here"]).starts_with("toolyard: --url here: ")
    );
    let said = no(&elsewhere, &keyless, &["run", "list", "--url", &gateway.url]);
    assert!(said.ends_with("set TOOLYARD_SECRET_KEY to a secret key of it\n"), "{said}");
}

#[test]
fn a_listen_that_is_no_address_and_port_is_told_the_form() {
    let folder = Folder::new();
    for (text, example) in [
        ("9872", "Write 127.0.0.1:9872 for this machine alone"),
        (":9872", "Write 127.0.0.1:9872 for this machine alone"),
        ("localhost", "Write 127.0.0.1:8787 for this machine alone"),
        ("localhost:9872", "Write 127.0.0.1:9872 for this machine alone"),
        ("127.0.0.1", "Write 127.0.0.1:8787 for this machine alone"),
        ("127.0.0.1:99999", "\"99999\" is no port: it must be 0 to 65535"),
    ] {
        let said = no(&folder, &[], &["serve", "--listen", text]);
        assert!(
            said.starts_with(&format!("toolyard: listen: {text:?} is not an address and a port (")),
            "{said}"
        );
        assert!(said.contains(example), "{said}");
        assert_eq!(said, no(&folder, &[("TOOLYARD_LISTEN", text)], &["config", "check"]));
    }
    std::fs::write(folder.path().join("toolyard.toml"), "listen = 9872").unwrap();
    let said = no(&folder, &[], &["config", "check"]);
    assert!(said.contains("an address and a port in quotes, as \"127.0.0.1:8787\""), "{said}");
    assert!(!folder.path().join("data").exists());
}

/// A gateway that is to start on a PostgreSQL that is not there.
fn refused(url: &str) -> (String, Duration) {
    let (folder, started) = (Folder::new(), Instant::now());
    let said = no(&folder, &[("TOOLYARD_DATABASE_URL", url)], &["serve", "--listen", "127.0.0.1:0"]);
    assert!(!said.contains("hunter2"), "{said}");
    assert!(!folder.path().join("data/keys.json").exists());
    assert_eq!(said.lines().count(), 1, "{said}");
    (said.trim_end().to_owned(), started.elapsed())
}

#[tokio::test]
async fn a_start_without_its_postgres_says_where_it_looked_and_what_to_do() {
    let away = nobody();
    let url = format!("postgres://yard:hunter2@{away}/kept");
    let gone = tokio::task::spawn_blocking(move || refused(&url));
    // One that takes the connection and says nothing.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = mute.local_addr().unwrap();
    let url = format!("postgres://yard:hunter2@{silent}/kept");
    let hung = tokio::task::spawn_blocking(move || refused(&url));
    let there = Database::postgres().url.clone().unwrap();
    let url = there.rsplit_once('/').map(|(server, _)| format!("{server}/not_made")).unwrap();
    let missing = tokio::task::spawn_blocking(move || refused(&url));
    let (_, server) = there.rsplit_once('@').unwrap();
    let url = format!("postgres://toolyard:hunter2@{server}");
    let shut = tokio::task::spawn_blocking(move || refused(&url));

    let (said, took) = gone.await.unwrap();
    let start =
        format!("toolyard: PostgreSQL at {away} (database kept) cannot be reached: Connection refused");
    assert!(said.starts_with(&start) && said.contains("times in 5 seconds)"), "{said}");
    assert!(said.ends_with("Start it, or mend host and port of database_url"), "{said}");
    assert!(took < PATIENCE, "{took:?}");
    let (said, took) = hung.await.unwrap();
    let start = format!(
        "toolyard: PostgreSQL at {silent} (database kept) takes no word of a new connection (waited 5 seconds)"
    );
    assert!(said.starts_with(&start), "{said}");
    assert!(took < PATIENCE, "{took:?}");
    let (said, _) = missing.await.unwrap();
    assert!(said.contains("(database not_made) has no such database: "), "{said}");
    assert!(said.ends_with("Make it (createdb not_made), or mend database_url"), "{said}");
    let (said, _) = shut.await.unwrap();
    assert!(said.contains(" refuses the user toolyard: password authentication failed"), "{said}");
    assert!(said.ends_with("Mend user and password of database_url"), "{said}");
}

/// What removes or revokes finds what it is told, or changes nothing.
fn unknown(folder: &Folder) {
    let key = "ab".repeat(32);
    for (args, said) in [
        (&["agent", "delete", "nobody"][..], "Agent not found"),
        (&["agent", "show", "nobody"], "Agent not found"),
        (&["agent", "delete", "../keys"], "Invalid agent name \"../keys\""),
        (&["key", "revoke", "a/b"], "(got a/b)"),
        (&["key", "revoke", "key_x", "--tenant", "a/b"], "--tenant a/b: "),
        (&["plugin", "uninstall", "a/b"], "a/b"),
        (&["backup", "nowhere/copy.db"], "nowhere/copy.part cannot be written: No such file"),
        (&["agent", "put", "nowhere.json"], "nowhere.json: No such file"),
        (&["key", "revoke", "key_x"], "Key not found"),
        (&["key", "revoke", "key_x", "--tenant", "acme"], "Key not found"),
        (&["run", "show", "run_x"], "Run not found"),
        (&["tenant", "delete", "acme", "--yes"], "Tenant not found"),
        (&["plugin", "uninstall", "no-plugin"], "Plugin not found"),
        (&["plugin", "install", "nowhere.json"], "nowhere.json: No such file"),
        (&["plugin", "trust", "nowhere.pub", "--plugin", "*"], "nowhere.pub: No such file"),
        (
            &["plugin", "revoke", "--plugin", "no-plugin", "--reason", "r"],
            "Plugin no-plugin not found: nothing was revoked",
        ),
        (
            &["plugin", "revoke", "--plugin", "no-plugin", "--version", "1.0.0", "--reason", "r"],
            "Version 1.0.0 of plugin no-plugin not found: nothing was revoked",
        ),
        (
            &["plugin", "revoke", "--curator", "nobody", "--reason", "r"],
            "Curator nobody not found: nothing was revoked",
        ),
        (&["plugin", "revoke", "--key", &key, "--reason", "r"], "not found: nothing was revoked"),
    ] {
        let text = no(folder, &[], args);
        assert!(
            text.starts_with("toolyard: ") && text.contains(said) && text.lines().count() == 1,
            "{args:?}: {text}"
        );
    }
}

#[tokio::test]
async fn what_is_unknown_is_not_found_and_nothing_changes() {
    let folder = Folder::new();
    let settings = toolyard_store::Settings::Sqlite { folder: folder.path().join("data") };
    toolyard_store::Store::open(&settings).await.unwrap().close().await;
    unknown(&folder);
    let gateway = Gateway::start_with(folder, &[]).await;
    let nothing = async |gateway: &Gateway| {
        assert_eq!(gateway.get("/api/audit").await["entries"], json!([]));
        assert_eq!(gateway.get("/api/plugins/revocations").await["revocations"], json!([]));
    };
    nothing(&gateway).await;
    unknown(&gateway.folder);
    let body = json!({"plugin": "no-plugin", "reason": "r"});
    let (status, answer) =
        ask(gateway.secret(reqwest::Method::POST, "/api/plugins/revoke").json(&body)).await;
    assert_eq!((status.as_u16(), answer["error"]["code"].as_str()), (404, Some("not_found")));
    assert!(message(&answer).starts_with("Plugin no-plugin not found"), "{answer}");
    nothing(&gateway).await;

    let said = no(&gateway.folder, &[], &["chat", "--agent", "nobody", "hello"]);
    assert_eq!(
        said,
        "toolyard: there is no agent \"nobody\"; there is none yet: store one with `toolyard agent put FILE`\n"
    );

    // Who means it revokes what has not come yet; once is enough.
    let ahead = ["plugin", "revoke", "--plugin", "no-plugin", "--reason", "a bad name"];
    let run = |more: &[&str]| toolyard(gateway.folder.path()).args(ahead).args(more).output().unwrap();
    assert!(run(&["--ahead"]).status.success());
    assert!(run(&[]).status.success(), "a repeat is fine");
    let revoked = gateway.get("/api/plugins/revocations").await["revocations"].clone();
    assert_eq!((revoked.as_array().unwrap().len(), &revoked[0]["target"]), (1, &json!("no-plugin")));
}

#[test]
fn what_is_named_and_not_there_is_one_sentence_and_no_start() {
    let folder = Folder::new();
    let here = |name: &str| folder.path().join(name).display().to_string();
    let (gone, keys) = (here("gone"), here("data/keys.json"));
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let named = [&serve[..], &["--config", &gone]].concat();
    let missing = format!("{gone} cannot be read: No such file");
    let no_folder = format!("agents_dir: there is no folder {gone}");
    for (env, args, said) in [
        (&[][..], &named[..], missing.as_str()),
        (&[("TOOLYARD_CONFIG", gone.as_str())], &serve, &missing),
        (&[("TOOLYARD_MCP_SERVERS_FILE", gone.as_str())], &serve, &missing),
        (&[("TOOLYARD_AGENTS_DIR", gone.as_str())], &serve, &no_folder),
        (&[("TOOLYARD_AGENTS_DIR", gone.as_str())], &["doctor"], &no_folder),
        (&[("TOOLYARD_AGENTS_DIR", gone.as_str())], &["config", "check"], &no_folder),
        (&[("TOOLYARD_DATA", "/proc/toolyard")], &serve, "the data folder /proc/toolyard cannot be used: "),
    ] {
        let text = no(&folder, env, args);
        assert!(text.starts_with(&format!("toolyard: {said}")), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "{args:?} left something");
    }
    // The file of the configuration names a folder too.
    std::fs::write(folder.path().join("toolyard.toml"), "agents_dir = \"gone\"").unwrap();
    let said = "toolyard: toolyard.toml, line 1: agents_dir: there is no folder gone\n";
    assert_eq!(no(&folder, &[], &serve), said);
    std::fs::create_dir(folder.path().join("gone")).unwrap();
    assert!(toolyard(folder.path()).args(["config", "check"]).output().unwrap().status.success());
    // A port that is taken leaves no folder behind.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = no(&folder, &[], &["serve", "--listen", &address]);
    assert!(said.starts_with(&format!("toolyard: cannot listen on {address}: ")), "{said}");
    assert!(!folder.path().join("data").exists());
    // Keys that cannot be read are not made anew.
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::write(&keys, "{\"secret\":").unwrap();
    let unset = [("TOOLYARD_SECRET_KEY", ""), ("TOOLYARD_PUBLIC_KEY", ""), ("TOOLYARD_JWT_SECRET", "")];
    let said = no(&folder, &unset, &serve);
    assert!(said.contains("keys.json") && said.lines().count() == 1, "{said}");
    assert_eq!(std::fs::read_to_string(&keys).unwrap(), "{\"secret\":");
}

#[test]
fn migrate_brings_a_database_along_and_makes_none() {
    let folder = Folder::new();
    let said = no(&folder, &[], &["migrate"]);
    let data = folder.path().join("data");
    assert_eq!(
        said,
        format!(
            "toolyard: there is no database in {}, so there is nothing to migrate: `toolyard serve` makes one, or name another folder with --data\n",
            data.display()
        )
    );
    assert!(!data.exists());
    let made = ["key", "create", "--kind", "secret"];
    assert!(toolyard(folder.path()).args(made).output().unwrap().status.success());
    let output = toolyard(folder.path()).arg("migrate").output().unwrap();
    let said = format!("the database has schema version {}\n", toolyard_store::known_version());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), said);
}

/// The lines of one part of a help page, by its heading.
fn part<'h>(help: &'h str, heading: &str) -> Vec<&'h str> {
    let lines = help.lines().skip_while(|line| *line != heading).skip(1);
    lines.take_while(|line| line.starts_with(' ') || line.is_empty()).collect()
}

#[test]
fn every_argument_of_every_command_has_a_word_of_help() {
    let folder = Folder::new();
    let mut commands = vec![Vec::<String>::new()];
    let (mut pages, mut arguments) = (0, 0);
    while let Some(command) = commands.pop() {
        let output = toolyard(folder.path()).args(&command).arg("-h").output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        pages += 1;
        for line in part(&help, "Commands:").into_iter().filter(|line| !line.is_empty()) {
            let name = line.split_whitespace().next().unwrap().to_owned();
            if name != "help" {
                commands.push([command.clone(), vec![name]].concat());
            }
        }
        for line in part(&help, "Arguments:").into_iter().chain(part(&help, "Options:")) {
            // Two spaces stand between what it is and what it says.
            let said = line.trim().split_once("  ").map(|(_, said)| said.trim());
            let is_said = said.is_some_and(|said| !said.is_empty() && !said.starts_with('['));
            assert!(line.is_empty() || is_said, "{command:?}: {line}");
            arguments += 1;
        }
    }
    assert!(pages > 25 && arguments > 100, "{pages} pages, {arguments} arguments");
}

#[test]
fn all_faults_of_a_configuration_are_named_at_once_with_their_lines() {
    let folder = Folder::new();
    let file = folder.path().join("toolyard.toml");
    std::fs::write(
        &file,
        "listen = \"nowhere\"\n\n[limits]\nburst = \"many\"\nbrust = 2\n\n[providers.mine]\nkind = \"opneai\"\n",
    )
    .unwrap();
    for args in [&["config", "check"][..], &["serve"]] {
        let said = no(&folder, &[], args);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!((lines[0], lines.len()), ("toolyard: 4 settings are wrong:", 5), "{said}");
        for wanted in [
            "  toolyard.toml, line 1: listen: ",
            "  toolyard.toml, line 4: limits.burst: ",
            "  toolyard.toml, line 5: limits.brust: unknown field",
            "  toolyard.toml, line 8: providers.mine.kind: ",
        ] {
            assert!(lines.iter().any(|line| line.starts_with(wanted)), "{wanted}: {said}");
        }
    }
    // Well written, and yet it cannot work.
    std::fs::write(&file, "default_agent = \"\"\n[limits]\nactive_runs = 0\n").unwrap();
    let said = no(&folder, &[], &["config", "check"]);
    assert!(said.contains("  toolyard.toml, line 1: default_agent: "), "{said}");
    assert!(said.contains("  toolyard.toml, line 3: limits.active_runs: must be at least 1\n"), "{said}");
    // What a variable says is no fault of the file.
    std::fs::write(&file, "listen = \"127.0.0.1:1\"\n").unwrap();
    let said = no(&folder, &[("TOOLYARD_LISTEN", "nowhere")], &["config", "check"]);
    assert!(said.starts_with("toolyard: listen: "), "{said}");
}
