//! Names of functions for the addresses of call stacks.

use std::collections::HashMap;
use std::ffi::c_void;

use crate::profile::Frame;

/// Functions of the recording itself, and of the allocator in front of it.
const OWN: [&str; 8] = [
    "backtrace::",
    "bine_profile::allocator::",
    "bine_profile::recorder::",
    "bine_profile::span::",
    "bine_profile::stack::",
    "__rust",
    "__rg_",
    "_Unwind_",
];
/// The files of these functions: one that is inlined may have a name without a path.
const OWN_FILES: [&str; 5] = [
    "profile/src/allocator.rs",
    "profile/src/recorder.rs",
    "profile/src/span.rs",
    "profile/src/stack.rs",
    "/src/backtrace/libunwind.rs",
];

/// The functions of a program, and the functions at each address.
#[derive(Default)]
pub(crate) struct Symbols {
    pub(crate) frames: Vec<Frame>,
    indexes: HashMap<Frame, u32>,
    /// The functions at an address, the innermost first: a function and those into which the
    /// compiler has inlined it.
    addresses: HashMap<usize, Box<[u32]>>,
}

impl Symbols {
    /// The functions of a call stack, the innermost first, without those of the recording itself.
    pub(crate) fn name(&mut self, addresses: &[usize]) -> Vec<u32> {
        let mut named = Vec::new();
        for address in addresses {
            if !self.addresses.contains_key(address) {
                let found = self.resolve(*address);
                self.addresses.insert(*address, found);
            }
            named.extend(&self.addresses[address]);
        }
        let is_own = |frame: &&u32| is_own(&self.frames[**frame as usize]);
        let own = named.iter().take_while(is_own).count();
        // Without symbols no function is known to be one of the recording.
        named.drain(..own);
        named
    }

    fn resolve(&mut self, address: usize) -> Box<[u32]> {
        let mut found = Vec::new();
        backtrace::resolve(address as *mut c_void, |symbol| {
            let Some(name) = symbol.name() else { return };
            let file = symbol.filename().map(|file| file.display().to_string());
            let (name, file) = (format!("{name:#}"), file.unwrap_or_default());
            let function = with_path(name, &file);
            found.push(Frame { function, file, line: symbol.lineno().unwrap_or(0) });
        });
        if found.is_empty() {
            found.push(Frame { function: format!("{address:#x}"), ..Frame::default() });
        }
        found.into_iter().map(|frame| self.index(frame)).collect()
    }

    fn index(&mut self, frame: Frame) -> u32 {
        let next = self.frames.len() as u32;
        *self.indexes.entry(frame).or_insert_with_key(|frame| {
            self.frames.push(frame.clone());
            next
        })
    }
}

fn is_own(frame: &Frame) -> bool {
    let function = frame.function.trim_start_matches('<');
    OWN.iter().any(|own| function.starts_with(own))
        || OWN_FILES.iter().any(|own| frame.file.ends_with(own))
        || frame.file.ends_with("/src/backtrace/mod.rs")
}

/// The path of a function. For one that is inlined, the compiler may have stored only its name: it gets the
/// path of its file, like `store::commit::apply` for `crates/store/src/commit/mod.rs`.
fn with_path(name: String, file: &str) -> String {
    let without_types = name.split('<').next().unwrap_or_default();
    if without_types.is_empty() || without_types.contains("::") {
        return name;
    }
    let Some(file) = file.strip_suffix(".rs") else { return name };
    let (package, modules) = file.rsplit_once("/src/").unwrap_or(("", file));
    let package = package.rsplit('/').next().unwrap_or_default();
    // A folder of a package from a registry ends with its version.
    let package = match package.rsplit_once('-') {
        Some((package, version)) if version.starts_with(|digit: char| digit.is_ascii_digit()) => {
            package
        }
        _ => package,
    };
    let modules = if package.is_empty() {
        modules.rsplit('/').next().unwrap_or(modules).to_owned()
    } else {
        modules.replace('/', "::")
    };
    let is_root = |module: &str| ["lib", "main", "mod", ""].contains(&module);
    let parts = [package].into_iter().chain(modules.split("::")).filter(|part| !is_root(part));
    parts.chain([without_types]).collect::<Vec<_>>().join("::")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::CallStack;

    #[inline(never)]
    fn walk_here() -> CallStack {
        std::hint::black_box(CallStack::walk())
    }

    #[test]
    fn names_the_functions_of_a_stack_and_leaves_out_its_own() {
        let mut symbols = Symbols::default();
        let named = symbols.name(walk_here().frames());
        let functions = named.iter().map(|frame| &symbols.frames[*frame as usize]);
        let functions: Vec<_> = functions.collect();
        let (first, second) = (functions[0], functions[1]);
        assert_eq!(first.function, "bine_profile::symbols::tests::walk_here");
        assert!(first.file.ends_with("symbols.rs") && first.line > 0, "{first:?}");
        let test = "names_the_functions_of_a_stack_and_leaves_out_its_own";
        assert!(second.function.ends_with(test), "{second:?}");
    }

    #[test]
    fn names_an_inlined_function_by_its_file() {
        for (file, expected) in [
            ("./crates/store/src/commit/mod.rs", "store::commit::apply"),
            (
                "/registry/src/index-1/compact_str-0.10.0/src/repr/heap.rs",
                "compact_str::repr::heap::apply",
            ),
            ("/rustc/1/library/alloc/src/vec/mod.rs", "alloc::vec::apply"),
            ("/shop/src/main.rs", "shop::apply"),
            ("/shop/tests/cart.rs", "cart::apply"),
            ("/shop/tests/cart/main.rs", "apply"),
            ("", "apply"),
            ("engine.c", "apply"),
        ] {
            assert_eq!(with_path("apply".to_owned(), file), expected, "{file}");
        }
        let file = "/shop/src/cart.rs";
        for (name, expected) in [
            ("poll<tokio::task::Task<()>>", "shop::cart::poll"),
            ("{closure#0}<a::B>", "shop::cart::{closure#0}"),
            ("<u8 as a::B>::poll", "<u8 as a::B>::poll"),
            ("a::poll<b::C>", "a::poll<b::C>"),
        ] {
            assert_eq!(with_path(name.to_owned(), file), expected);
        }
    }

    #[test]
    fn shows_an_address_without_a_symbol() {
        let mut symbols = Symbols::default();
        let named = symbols.name(&[3]);
        assert_eq!(symbols.frames[named[0] as usize].function, "0x3");
    }
}
