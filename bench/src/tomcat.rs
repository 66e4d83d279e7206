//! Starts Debian's Tomcat with a separate folder, so that the installed service is not used.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::machine::first_line;
use crate::tools::{Workspace, require};

/// The programs of Debian's Tomcat.
const HOME: &str = "/usr/share/tomcat10";

/// The settings of the NIO connector.
pub(crate) struct TomcatSetting {
    pub(crate) port: u16,
    /// The most threads that serve requests.
    pub(crate) threads: u32,
    /// Milliseconds until an idle connection is closed.
    pub(crate) idle: u64,
    /// The port of a second connector with TLS, by the certificate of the workspace.
    pub(crate) secure: Option<u16>,
}

/// Fails with the packages to install if Tomcat is missing.
pub(crate) fn require_tomcat() -> Result<()> {
    let is_installed = Path::new(HOME).join("bin/bootstrap.jar").is_file();
    ensure!(is_installed, "Tomcat is missing: apt-get install tomcat10");
    require("java", "default-jre-headless")
}

/// The versions of Tomcat and Java.
pub(crate) fn version() -> String {
    let java = first_line("java", &["-version"]);
    let jar = format!("{HOME}/lib/catalina.jar");
    let info = ["-cp", &jar, "org.apache.catalina.util.ServerInfo"];
    format!("{}; {java}", first_line("java", &info))
}

/// The library of the servlet interface, for a compiler.
pub(crate) fn servlet_library() -> String {
    format!("{HOME}/lib/servlet-api.jar")
}

/// Writes the configuration into the folder `base`. `application` is the folder of the only
/// application; `None` for those in `base/webapps`.
pub(crate) fn write_base(
    workspace: &Workspace,
    base: &Path,
    setting: &TomcatSetting,
    application: Option<&Path>,
) -> Result<()> {
    let (source, own) = (workspace.root.join("bench/peers/tomcat"), base.join("conf"));
    fs::create_dir_all(&own)?;
    fs::create_dir_all(base.join("webapps"))?;
    // Without a search for tag libraries, which takes longer than the rest of the start.
    let context = application.map_or_else(String::new, |folder| {
        format!(
            r#"<Context path="" docBase="{}" containerSciFilter="org\.apache\.(jasper|tomcat\.websocket).*">
          <JarScanner scanClassPath="false" scanManifest="false"/>
        </Context>"#,
            folder.display()
        )
    });
    let secure = setting.secure.map(|port| secure_connector(workspace, port, setting));
    let text = fs::read_to_string(source.join("server.xml"))?
        .replace("@PORT@", &setting.port.to_string())
        .replace("@WORK@", &base.display().to_string())
        .replace("@THREADS@", &setting.threads.to_string())
        .replace("@IDLE@", &setting.idle.to_string())
        .replace("@SECURE@", &secure.unwrap_or_default())
        .replace("@CONTEXT@", &context);
    fs::write(own.join("server.xml"), text)?;
    fs::copy(source.join("web.xml"), own.join("web.xml"))?;
    Ok(())
}

/// The same connector with TLS. Tickets are those of Java.
fn secure_connector(workspace: &Workspace, port: u16, setting: &TomcatSetting) -> String {
    let (threads, idle) = (setting.threads, setting.idle);
    let [own, key] = ["own.pem", "key.pem"].map(|name| workspace.work.join(name));
    format!(
        r#"<Connector port="{port}" address="127.0.0.1" protocol="org.apache.coyote.http11.Http11NioProtocol"
               maxThreads="{threads}" connectionTimeout="20000" keepAliveTimeout="{idle}"
               maxKeepAliveRequests="-1" acceptCount="1024" maxConnections="9000" SSLEnabled="true">
      <SSLHostConfig>
        <Certificate certificateFile="{}" certificateKeyFile="{}" type="EC"/>
      </SSLHostConfig>
    </Connector>"#,
        own.display(),
        key.display()
    )
}

/// The command that starts it with the folder `base` and these options of Java.
pub(crate) fn command(base: &Path, options: &[String]) -> Vec<String> {
    let base = base.display();
    let path = format!("{HOME}/bin/bootstrap.jar:{HOME}/bin/tomcat-juli.jar");
    let mut words = vec![
        "java".to_owned(),
        format!("-Dcatalina.home={HOME}"),
        format!("-Dcatalina.base={base}"),
        format!("-Djava.io.tmpdir={base}"),
    ];
    words.extend_from_slice(options);
    words.extend(
        ["-cp", &path, "org.apache.catalina.startup.Bootstrap", "start"].map(str::to_owned),
    );
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_options_to_java_before_the_class() {
        let words = command(Path::new("/base"), &["-Dx=1".to_owned()]);
        let place = |word: &str| words.iter().position(|own| own == word).unwrap();
        assert!(place("-Dcatalina.base=/base") < place("-Dx=1"));
        assert!(place("-Dx=1") < place("org.apache.catalina.startup.Bootstrap"));
        assert_eq!(words.last().unwrap(), "start");
    }
}
