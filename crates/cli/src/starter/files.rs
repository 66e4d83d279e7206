//! The files of new applications, and the types for editors.

/// A kind of application.
pub(super) struct AppTemplate {
    pub(super) name: &'static str,
    /// Its files: the path in the folder, and the text.
    pub(super) files: &'static [(&'static str, &'static str)],
}

/// Declares a template by the folder of its files.
macro_rules! template {
    ($name:literal) => {
        AppTemplate {
            name: $name,
            files: &[
                ("index.tsx", include_str!(concat!("../../starter/", $name, "/index.tsx"))),
                ("_layout.tsx", include_str!(concat!("../../starter/", $name, "/_layout.tsx"))),
                (
                    "public/style.css",
                    include_str!(concat!("../../starter/", $name, "/public/style.css")),
                ),
                (
                    "public/icon.svg",
                    include_str!(concat!("../../starter/", $name, "/public/icon.svg")),
                ),
                (".gitignore", include_str!("../../starter/gitignore")),
            ],
        }
    };
}

/// All templates; the first is the default.
pub(super) static TEMPLATES: [AppTemplate; 2] = [template!("board"), template!("blank")];

/// The configuration of TypeScript for a site.
pub(super) const TSCONFIG: &str = include_str!("../../starter/tsconfig.json");

/// The folder of the types in a site. `tsconfig.json` names it.
pub(super) const TYPES_FOLDER: &str = ".bine/types";

/// The types: the name of the file, and the text.
pub(super) const TYPES: [(&str, &str); 9] = [
    ("bine.d.ts", include_str!("../../starter/types/bine.d.ts")),
    ("browser.d.ts", include_str!("../../starter/types/browser.d.ts")),
    ("elements.d.ts", include_str!("../../starter/types/elements.d.ts")),
    ("globals.d.ts", include_str!("../../starter/types/globals.d.ts")),
    ("jsx-dev-runtime.d.ts", include_str!("../../starter/types/jsx-dev-runtime.d.ts")),
    ("jsx-runtime.d.ts", include_str!("../../starter/types/jsx-runtime.d.ts")),
    ("markup.d.ts", include_str!("../../starter/types/markup.d.ts")),
    ("start.d.ts", include_str!("../../starter/types/start.d.ts")),
    ("trees.d.ts", include_str!("../../starter/types/trees.d.ts")),
];
