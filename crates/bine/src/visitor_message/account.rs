//! The texts of the pages and services of accounts.

use std::fmt;

messages! {
    /// A text of the pages and services of accounts, as
    /// [`VisitorMessage::Account`](super::VisitorMessage::Account).
    enum AccountMessage;

    /// The title of the page to sign up, its button, and a link to it.
    "account_sign_up" SignUp {} => "Sign up";
    /// The title of the page to log in, its button, and a link to it.
    "account_log_in" LogIn {} => "Log in";
    /// The title of the page to log out, and a button.
    "account_log_out" LogOut {} => "Log out";
    /// The label of a name.
    "account_name" Name {} => "Name";
    /// The hint below the name at a sign-up.
    "account_name_hint" NameHint {} => "Other users may see it. It cannot be changed.";
    /// The label of an e-mail address, and a title.
    "account_email" Email {} => "E-mail";
    /// The hint below an optional e-mail address.
    "account_email_hint" EmailHint {} => "Optional. With it you can set a forgotten password.";
    /// The label of a password, and a title.
    "account_password" Password {} => "Password";
    /// The hint below the password at a sign-up.
    "account_password_hint" PasswordHint {
        /// The shortest allowed length, in characters.
        least: usize = 8
    }
        => "At least {least} characters; 15 or more are better. A few unrelated words are easy to remember.";
    /// The question before the link to log in.
    "account_have_account" HaveAccount {} => "You have an account?";
    /// The label of the name at a log-in.
    "account_name_or_email" NameOrEmail {} => "Name or e-mail";
    /// The label of the box for a long session.
    "account_remember" Remember {} => "Remember me on this device";
    /// The link to the page for a forgotten password.
    "account_forgot_password" ForgotPassword {} => "Forgotten your password?";
    /// A log-out has failed.
    "account_still_logged_in" StillLoggedIn {} => "You are still logged in.";
    /// The title of the page for a forgotten password.
    "account_forgotten_title" ForgottenTitle {} => "Forgotten password";
    /// The hint below the e-mail address for a forgotten password.
    "account_forgotten_hint" ForgottenHint {}
        => "The address of your account. You get a link that sets a new password.";
    /// The button that sends a link by mail.
    "account_send_link" SendLink {} => "Send the link";
    /// A link for a forgotten password was sent, if the address is known.
    "account_link_sent" LinkSent {}
        => "If an account has this address, a mail with a link is on its way. Look for it in your mailbox.";
    /// The label of a new password, and a title.
    "account_new_password" NewPassword {} => "New password";
    /// The hint below a new password in place of a forgotten one.
    "account_reset_hint" ResetHint {
        /// The shortest allowed length, in characters.
        least: usize = 8
    } => "At least {least} characters. All your sessions will end.";
    /// The hint below a new password.
    "account_new_password_hint" NewPasswordHint {
        /// The shortest allowed length, in characters.
        least: usize = 8
    } => "At least {least} characters. All other sessions will end.";
    /// The link to the page for a forgotten password, after a link has expired.
    "account_ask_for_link" AskForLink {} => "Ask for a new link";
    /// The button that sets a new password by a link.
    "account_set_password" SetPassword {} => "Set the password";
    /// The title of the page that confirms an e-mail address.
    "account_confirm_title" ConfirmTitle {} => "E-mail address";
    /// The question of that page.
    "account_confirm_question" ConfirmQuestion {
        /// The address.
        email: String = "ann@example.org".to_owned()
    } => "Is {email} your e-mail address?";
    /// The button that confirms an e-mail address.
    "account_confirm" Confirm {} => "Confirm";
    /// The title of the page of an account, and a link to it.
    "account_yours" Yours {} => "Your account";
    /// An e-mail address was confirmed.
    "account_email_confirmed" EmailConfirmed {} => "Your e-mail address is confirmed.";
    /// A new password was set by a link.
    "account_password_reset" PasswordReset {} => "Your new password is set. Log in with it.";
    /// The account was removed.
    "account_removed" Removed {} => "Your account was removed.";
    /// The password was changed.
    "account_password_changed" PasswordChanged {}
        => "Your new password is set. Other sessions have ended.";
    /// A link to a new e-mail address was sent, if the address is free.
    "account_email_sent" EmailSent {}
        => "If the address is free, a mail with a link is on its way to it.";
    /// Preferences were stored.
    "account_preferences_stored" PreferencesStored {} => "Your preferences are stored.";
    /// A session was ended.
    "account_session_ended" SessionEnded {} => "The session has ended.";
    /// The words before the name of the user.
    "account_logged_in_as" LoggedInAs {} => "You are logged in as";
    /// The button that changes the password.
    "account_change_password" ChangePassword {} => "Change the password";
    /// The button that changes the e-mail address.
    "account_change_email" ChangeEmail {} => "Change the e-mail address";
    /// An e-mail address is not confirmed yet.
    "account_email_pending" EmailPending {
        /// The address.
        email: String = "ann@example.org".to_owned()
    } => "{email} waits for its link to be opened.";
    /// An e-mail address is confirmed.
    "account_email_is_confirmed" EmailIsConfirmed {
        /// The address.
        email: String = "ann@example.org".to_owned()
    } => "{email} is confirmed.";
    /// The title of the preferences.
    "account_preferences" Preferences {} => "Preferences";
    /// The button that stores preferences.
    "account_store_preferences" StorePreferences {} => "Store the preferences";
    /// The title of the list of sessions.
    "account_sessions" Sessions {} => "Sessions";
    /// The session of the request, in the list.
    "account_this_session" ThisSession {
        /// When it began, in UTC.
        created: String = "2026-11-21 09:30".to_owned(),
        /// When it was last used, in UTC.
        last_used: String = "2026-11-21 09:45".to_owned()
    } => "This session: since {created}, last used {last_used} (UTC)";
    /// A different session, in the list.
    "account_other_session" OtherSession {
        /// When it began, in UTC.
        created: String = "2026-11-21 09:30".to_owned(),
        /// When it was last used, in UTC.
        last_used: String = "2026-11-21 09:45".to_owned()
    } => "A session: since {created}, last used {last_used} (UTC)";
    /// The button that ends a session.
    "account_end_session" EndSession {} => "End";
    /// The button that ends all other sessions.
    "account_end_others" EndOthers {} => "End all others";
    /// The title of the form that removes the account.
    "account_removal_title" RemovalTitle {} => "Remove the account";
    /// The button that removes the account.
    "account_remove" Remove {} => "Remove my account";
    /// The label of the current password.
    "account_current_password" CurrentPassword {} => "Current password";
    /// Fields of a form are invalid (422).
    "account_correct_fields" CorrectFields {} => "Please correct the marked fields.";
    /// The name or the password is wrong (403).
    "account_wrong" Wrong {} => "The name or the password is wrong.";
    /// The current password is wrong (403).
    "account_wrong_password" WrongPassword {} => "The current password is wrong.";
    /// The account is blocked (403).
    "account_blocked" Blocked {} => "This account is blocked.";
    /// Too many tries (429).
    "account_wait" Wait {
        /// The seconds until the next try.
        seconds: u64 = 60,
        /// This time in words, in English.
        time: String = "60 seconds".to_owned()
    } => "Too many tries. Try again in {time}.";
    /// Too many passwords wait to be compared (503).
    "account_busy" Busy {} => "The server is busy. Try again in a few seconds.";
    /// A link has expired or was used (410).
    "account_dead_link" DeadLink {} => "This link has expired or was used. Ask for a new one.";
    /// No user has logged in (401).
    "account_needs_user" NeedsUser {} => "Log in first.";
    /// An unexpected error.
    "account_failed" Failed {} => "That did not work. Try again later.";
    /// The program accepts no sign-ups (403).
    "account_closed" Closed {} => "Nobody can sign up here.";
    /// A sign-up needs an invitation (403).
    "account_needs_invitation" NeedsInvitation {} => "To sign up here, you need an invitation.";
    /// Another account has the e-mail address (403).
    "account_email_in_use" EmailInUse {} => "Another account has this e-mail address.";
    /// The program cannot send mails (403).
    "account_no_mail" NoMail {}
        => "This site cannot send mails yet. Its operator can change that: `Accounts::mail` sends them, and `Accounts::address` sets the host of links.";
    /// The request has an API token (403).
    "account_not_by_token" NotByToken {}
        => "A request with an API token cannot do that. Send it without the token.";
    /// The configuration declares the account (403).
    "account_declared" Declared {}
        => "The server's configuration declares this account; its operator changes it there.";
    /// A detail: the password is too short.
    "account_password_short" PasswordShort {
        /// The shortest allowed length, in characters.
        least: usize = 8
    } => "must have at least {least} characters; 15 or more are better";
    /// A detail: the password is too long.
    "account_password_long" PasswordLong {
        /// The longest allowed length.
        most: usize = 64
    } => "must have at most {most} characters";
    /// A detail: the password is a common one.
    "account_password_common" PasswordCommon {}
        => "is one of those that attackers try first; a few unrelated words are better";
    /// A detail: the password is made of words of the account.
    "account_password_personal" PasswordPersonal {}
        => "must not be made of your name, your e-mail address or this site's";
    /// A detail: the name has letters that names cannot have.
    "account_name_letters" NameLetters {}
        => "must have no white space at its ends, no control characters, and none of / * {{ }}";
    /// A detail: the name is too long.
    "account_name_long" NameLong {
        /// The longest allowed length.
        most: usize = 64
    } => "must have at most {most} characters";
    /// A detail: the name looks like an e-mail address.
    "account_name_at" NameAt {} => "must not contain @, which marks an e-mail address";
    /// A detail: the name has invisible characters.
    "account_name_invisible" NameInvisible {}
        => "must not contain invisible or combining characters";
    /// A detail: the name is reserved.
    "account_name_reserved" NameReserved {} => "is reserved";
    /// A detail: the text is no e-mail address.
    "account_email_form" EmailForm {} => "must be an address like ann@example.org";
    /// A detail: the preferences are too long.
    "account_preferences_long" PreferencesLong {
        /// The longest allowed length.
        most: usize = 64
    } => "must have at most {most} bytes as JSON";

    areas {}
}
