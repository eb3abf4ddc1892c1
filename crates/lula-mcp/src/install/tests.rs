use super::*;

fn server() -> ServerCommandLine {
    ServerCommandLine {
        program: PathBuf::from("/opt/lula/bin/lula"),
        arguments: vec!["mcp".to_owned(), "serve".to_owned()],
    }
}

fn home(directory: &Path) -> ClientHome {
    ClientHome {
        home: directory.to_owned(),
        variable: |_| None,
    }
}

const EDITED: [McpClientKind; 7] = [
    McpClientKind::Codex,
    McpClientKind::Claude,
    McpClientKind::Opencode,
    McpClientKind::Gemini,
    McpClientKind::Qwen,
    McpClientKind::Cursor,
    McpClientKind::Vscode,
];

#[test]
fn what_is_installed_can_be_taken_back_to_the_byte() {
    for client in EDITED {
        let directory = tempfile::tempdir().unwrap();
        let home = home(directory.path());
        let text = match client {
            McpClientKind::Codex => {
                "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"\n"
            }
            McpClientKind::Claude | McpClientKind::Gemini => {
                "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"other\": {\"command\": \"y\"}\n  }\n}\n"
            }
            _ => "{\n  // mine\n  \"b\": 1,\n  \"a\": [1, 2]\n}\n",
        };
        let path = client.path(&home);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let put = client.change(Some(&server()), &home).unwrap();
        put.write().unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(
            written.contains("/opt/lula/bin/lula"),
            "{client:?}: {written}"
        );
        // Once more changes nothing.
        assert!(
            client.change(Some(&server()), &home).unwrap().is_empty(),
            "{client:?}"
        );
        client.change(None, &home).unwrap().write().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{client:?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_made() {
    for client in EDITED {
        let directory = tempfile::tempdir().unwrap();
        let home = home(directory.path());
        client
            .change(Some(&server()), &home)
            .unwrap()
            .write()
            .unwrap();
        let text = std::fs::read_to_string(client.path(&home)).unwrap();
        assert!(text.contains("serve"), "{client:?}: {text}");
        let removed = client.change(None, &home).unwrap();
        assert!(
            !removed.after.contains("lula"),
            "{client:?}: {}",
            removed.after
        );
    }
}

#[test]
fn a_server_of_that_name_that_is_another_program_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let home = home(directory.path());
    let path = McpClientKind::Cursor.path(&home);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(
        &path,
        "{\"mcpServers\": {\"lula\": {\"command\": \"npx\"}}}",
    )
    .unwrap();
    for server in [Some(server()), None] {
        let refused = McpClientKind::Cursor.change(server.as_ref(), &home);
        assert!(
            matches!(refused, Err(InstallError::Taken { .. })),
            "{refused:?}"
        );
    }
}

#[test]
fn what_is_no_configuration_is_left_alone() {
    for (client, text) in [
        (McpClientKind::Codex, "model = "),
        (McpClientKind::Codex, "mcp_servers = 3"),
        (McpClientKind::Claude, "{"),
        (McpClientKind::Claude, "[]"),
        (McpClientKind::Claude, "{\"mcpServers\": []}"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let home = home(directory.path());
        let path = client.path(&home);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        assert!(client.change(Some(&server()), &home).is_err(), "{text}");
    }
}

#[test]
fn a_file_that_changed_since_it_was_shown_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let home = home(directory.path());
    let change = McpClientKind::Qwen.change(Some(&server()), &home).unwrap();
    let path = McpClientKind::Qwen.path(&home);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "{\"new\": true}").unwrap();
    assert!(matches!(change.write(), Err(InstallError::Changed(_))));
    assert_eq!(std::fs::read_to_string(path).unwrap(), "{\"new\": true}");
}

#[test]
fn what_cannot_be_edited_is_told_to_be_written_by_hand() {
    let directory = tempfile::tempdir().unwrap();
    let told = McpClientKind::Goose.change(Some(&server()), &home(directory.path()));
    let text = told.unwrap_err().to_string();
    assert!(
        text.contains("cmd: \"/opt/lula/bin/lula\"") && text.contains("args: [\"mcp\", \"serve\"]")
    );
}
