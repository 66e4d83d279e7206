//! The texts of the pages of API tokens.

use std::fmt;

messages! {
    /// A text of the pages of API tokens, as
    /// [`VisitorMessage::ApiToken`](super::VisitorMessage::ApiToken).
    enum ApiTokenMessage;

    /// The title of the page.
    "api_token_title" Title {} => "API tokens";
    /// The first paragraph of the page.
    "api_token_purpose" Purpose {}
        => "A program uses a token instead of your password. It may do what you may do, within the limits that you choose here.";
    /// The title of the form for a token.
    "api_token_new_title" NewTitle {} => "New token";
    /// The label of the field that describes a token.
    "api_token_label" Label {} => "What uses it";
    /// The label of the lifetime.
    "api_token_days" Days {} => "Days until it expires";
    /// The label of the paths.
    "api_token_paths" Paths {} => "Only these paths (optional, such as /api/*)";
    /// The label of the box for a token that only reads.
    "api_token_read_only" ReadOnly {} => "Read only";
    /// The button that creates a token.
    "api_token_create" Create {} => "Create token";
    /// The user has no tokens.
    "api_token_none" None {} => "You have no tokens.";
    /// The head of the column with descriptions.
    "api_token_used_by" UsedBy {} => "Used by";
    /// The head of the column with scopes.
    "api_token_permits" Permits {} => "Permits";
    /// The head of the column with the times of creation.
    "api_token_created" Created {} => "Created";
    /// The head of the column with the times of expiry.
    "api_token_expires" Expires {} => "Expires";
    /// The head of the column with the times of use.
    "api_token_last_used" LastUsed {} => "Last used";
    /// A token that was never used.
    "api_token_never" Never {} => "never";
    /// The button that revokes a token.
    "api_token_revoke" Revoke {} => "Revoke";
    /// The title of the page with a new token.
    "api_token_created_title" CreatedTitle {} => "New API token";
    /// The first paragraph of that page.
    "api_token_copy_now" CopyNow {}
        => "Copy the token now. The server stores only a hash of it and cannot show it again.";
    /// The link to the list of tokens.
    "api_token_all" All {} => "All tokens";
    /// A detail: the description is too short or too long.
    "api_token_label_length" LabelLength {
        /// The longest description, in characters.
        most: usize = 100
    } => "describe the token in 1 to {most} characters";
    /// A detail: the lifetime is too short or too long.
    "api_token_days_range" DaysRange {
        /// The longest lifetime in days.
        most: u32 = 365
    } => "a token lasts 1 to {most} days";
    /// A detail: the paths are invalid.
    "api_token_paths_form" PathsForm {
        /// The reason, in English.
        reason: String = "\"api\" is no path for a token".to_owned()
    } => "{reason}";
    /// A request with a token creates or revokes one (403).
    "api_token_by_token" ByToken {}
        => "A request with an API token cannot create or revoke tokens. Log in to do that.";
    /// The user has too many tokens (409).
    "api_token_too_many" TooMany {
        /// The most tokens of a user.
        most: usize = 50
    } => "A user has at most {most} API tokens. Revoke one first.";
    /// The token does not exist (404).
    "api_token_missing" Missing {} => "There is no such token.";

    areas {}
}
