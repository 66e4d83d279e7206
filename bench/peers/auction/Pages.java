package auction;

import auction.Auction.Page;
import auction.Auction.Refusal;
import auction.Tables.Bid;
import auction.Tables.Comment;
import auction.Tables.Item;
import auction.Tables.OldItem;
import auction.Tables.Place;
import auction.Tables.Purchase;
import auction.Tables.User;
import jakarta.servlet.http.HttpServletRequest;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.UUID;

/** The pages of the example {@code auction}, with the same bytes. Callers hold the lock. */
final class Pages {
    private static final int ITEMS = 20;
    private static final int MOST_PAGES = 500;
    private static final int BIDS = 50;
    private static final int ROWS = 20;

    private final Tables tables;
    private final Access access;
    private final String suffix;

    Pages(Tables tables, Access access, String suffix) {
        this.tables = tables;
        this.access = access;
        this.suffix = suffix;
    }

    /** Whether a form with this address changes rows. */
    static boolean writes(String path) {
        return path.equals("/register")
                || path.equals("/items")
                || path.endsWith("/bids")
                || path.endsWith("/purchases")
                || path.endsWith("/comments");
    }

    /** How often the page uses tables, each time with a delay. */
    static int accesses(String[] parts, boolean isForm) {
        if (parts.length < 2) {
            return 0;
        }
        return switch (parts[1]) {
            case "browse" -> 0;
            case "sell", "me" -> isForm ? 1 : 0;
            default -> 1;
        };
    }

    Page get(String[] parts, HttpServletRequest request) throws Refusal {
        String first = parts.length > 1 ? parts[1] : "";
        switch (parts.length) {
            case 0, 1:
                return home();
            case 2:
                switch (first) {
                    case "browse":
                        return browse();
                    case "categories":
                        return places("Categories", "Categories", "/categories/", tables.categories);
                    case "regions":
                        return places("Regions", "Regions", "/regions/", tables.regions);
                    case "register":
                        return registerForm();
                    case "me":
                        return page("About me", html().raw("<h1>Who are you?</h1> "), "/me", "Show me");
                    case "sell":
                        return page("Log in to sell", html().raw("<h1>Who sells?</h1> "), "/sell", "Go on");
                    default:
                        break;
                }
                break;
            case 3:
                switch (first) {
                    case "categories":
                        return search(null, category(parts[2]), request);
                    case "regions":
                        Place region = region(parts[2]);
                        String title = "Categories in " + region.name();
                        return places(title, title, "/regions/" + region.slug() + "/", tables.categories);
                    case "items":
                        return viewItem(item(parts[2]));
                    case "sold":
                        return viewOldItem(found(tables.oldItems.get(Auction.id(parts[2])), "item"));
                    case "users":
                        User user = user(parts[2]);
                        return new Page(
                                user.name,
                                profile(html().raw("<h1>").text(user.name).raw("</h1> "), user).toString());
                    default:
                        break;
                }
                break;
            case 4:
                switch (first + "/" + parts[3]) {
                    case "items/bids":
                        return bidHistory(item(parts[2]));
                    case "items/bid":
                        return loginForItem(item(parts[2]), "bid", "bids for");
                    case "items/buy":
                        return loginForItem(item(parts[2]), "buy", "buys");
                    case "users/comment":
                        return commentForm(user(parts[2]), item(field(request, "item")));
                    default:
                        if (first.equals("regions")) {
                            return search(region(parts[2]), category(parts[3]), request);
                        }
                }
                break;
            default:
                break;
        }
        throw new Refusal(404, "Not found");
    }

    Page post(String[] parts, HttpServletRequest request) throws Refusal {
        String first = parts.length > 1 ? parts[1] : "";
        if (parts.length == 2) {
            switch (first) {
                case "register":
                    return registerUser(request);
                case "me":
                    return aboutMe(logIn(request));
                case "sell":
                    return selectCategory(logIn(request));
                case "items":
                    return registerItem(request);
                default:
                    break;
            }
        } else if (parts.length == 3 && first.equals("sell") && parts[2].equals("form")) {
            return sellForm(request);
        } else if (parts.length == 4) {
            switch (first + "/" + parts[3]) {
                case "items/bid": {
                    String pass = access.pass(logIn(request).id);
                    return new Page("Your bid", amount(html(), open(parts[2]), pass, -1).toString());
                }
                case "items/bids":
                    return storeBid(open(parts[2]), request);
                case "items/buy":
                    return buyNow(open(parts[2]), access.pass(logIn(request).id));
                case "items/purchases":
                    return storePurchase(open(parts[2]), request);
                case "users/comment": {
                    String pass = access.pass(logIn(request).id);
                    return putComment(user(parts[2]), item(field(request, "item")), pass);
                }
                case "users/comments":
                    return storeComment(user(parts[2]), item(field(request, "item")), request);
                default:
                    break;
            }
        }
        throw new Refusal(404, "Not found");
    }

    private Page home() {
        Html html = html()
                .raw("<h1>Good things, sold to whoever gives most</h1>")
                .raw("<p>Look around, bid for what you like, and sell what you have too much of.</p>")
                .open("p", "actions")
                .raw("<a href=\"/categories\">All categories</a> <a href=\"/regions\">What is near you</a>")
                .raw("<a href=\"/sell\">Sell something</a></p>");
        return new Page("The Hopyard, an auction house", html.toString());
    }

    private Page browse() {
        Html html = html()
                .raw("<h1>Browse</h1><ul><li><a href=\"/categories\">By category</a></li>")
                .raw("<li><a href=\"/regions\">By region</a></li></ul>");
        return new Page("Browse", html.toString());
    }

    private Page places(String title, String head, String before, List<Place> places) {
        Html html = html().raw("<h1>").text(head).raw("</h1>").open("ul", "choices");
        for (Place place : places) {
            html.raw("<li>").link(before + place.slug(), place.name()).raw("</li>");
        }
        return new Page(title, html.raw("</ul>").toString());
    }

    private Page search(Place region, Place category, HttpServletRequest request) throws Refusal {
        String wanted = request.getParameter("page");
        int number = (int) Math.max(1, Math.min(MOST_PAGES, wanted == null ? 1 : whole(wanted)));
        long now = Tables.now();
        List<Item> items = new ArrayList<>();
        int skipped = (number - 1) * ITEMS;
        // A linear search for the first open one: nothing ends within a run.
        for (Item item : tables.search(region, category)) {
            if (item.ends < now || skipped-- > 0) {
                continue;
            }
            items.add(item);
            if (items.size() > ITEMS) {
                break;
            }
        }
        String title = category.name() + (region == null ? "" : " in " + region.name());
        String path = region == null
                ? "/categories/" + category.slug()
                : "/regions/" + region.slug() + "/" + category.slug();
        boolean hasMore = items.size() > ITEMS && number < MOST_PAGES;
        Html html = html().raw("<h1>").text(title).raw("</h1> ");
        if (items.isEmpty()) {
            html.raw("<p>Nothing is for sale here at the moment.</p>");
        } else {
            listing(html, items.subList(0, Math.min(ITEMS, items.size())));
        }
        html.open("p", "tools");
        if (number > 1) {
            html.raw("<a rel=\"prev\" href=\"").text(path + "?page=" + (number - 1));
            html.raw("\">Sooner to end</a>");
        }
        if (hasMore) {
            html.raw("<a rel=\"next\" href=\"").text(path + "?page=" + (number + 1));
            html.raw("\">Later to end</a>");
        }
        return new Page(title, html.raw("</p>").toString());
    }

    private void listing(Html html, List<Item> items) {
        html.open("ul", "listing");
        for (Item item : items) {
            String path = "/items/" + item.id;
            html.raw("<li>").link(path, item.name).raw(" ");
            html.open("span", "price").raw("$").number(item.price()).raw("</span> ");
            html.open("span", "note").text(bids(item.bids)).raw(", ").text(left(item.ends)).raw("</span>");
            if (item.buyNow != null) {
                html.raw("<a class=\"note").raw(suffix).raw("\" href=\"").raw(path).raw("/buy\">");
                html.raw("Buy now for $").number(item.buyNow).raw("</a>");
            }
            html.raw("<a class=\"act").raw(suffix).raw("\" href=\"").raw(path).raw("/bid\">");
            html.raw("<img src=\"/bid.svg\" alt=\"Bid\" width=\"64\" height=\"24\" /></a></li>");
        }
        html.raw("</ul>");
    }

    private Page viewItem(Item item) {
        User seller = item.seller;
        Html html = html().raw("<h1>").text(item.name).raw("</h1><dl><dt>");
        html.raw(item.bids == 0 ? "Begins at" : "Highest bid").raw("</dt>");
        html.open("dd", "price").raw("$").number(item.price()).raw("</dd><dt>Bids</dt><dd>");
        html.link("/items/" + item.id + "/bids", Long.toString(item.bids)).raw("</dd><dt>Time</dt><dd>");
        html.text(item.quantity > 0 ? left(item.ends) : "sold").raw("</dd><dt>Reserve</dt><dd>");
        html.raw(reserve(item)).raw("</dd><dt>Quantity</dt><dd>").number(item.quantity);
        html.raw("</dd><dt>Seller</dt><dd>").link("/users/" + seller.id, seller.name);
        html.raw(" (").number(seller.rating).raw(") ");
        html.link("/users/" + seller.id + "/comment?item=" + item.id, "Comment").raw("</dd></dl>");
        if (item.isOpen()) {
            html.open("p", "actions").link("/items/" + item.id + "/bid", "Bid for it");
            if (item.buyNow != null) {
                html.link("/items/" + item.id + "/buy", "Buy it now for $" + item.buyNow);
            }
            html.raw("</p>");
        }
        html.raw("<h2>Description</h2><p>").text(item.description).raw("</p>");
        return new Page(item.name, html.toString());
    }

    private static String reserve(Item item) {
        if (item.reserve == null) {
            return "none";
        }
        return item.bids > 0 && item.highest >= item.reserve ? "reached" : "not reached";
    }

    private Page viewOldItem(OldItem item) {
        Html html = html().raw("<h1>").text(item.name).raw("</h1><p>");
        html.raw(item.buyer != null ? "Sold" : "Not sold; it began").raw(" for $").number(item.price);
        html.raw(" after ").text(bids(item.bids)).raw(", on ").text(day(item.ended)).raw(", by");
        html.link("/users/" + item.seller.id, item.seller.name).raw(".</p><p>");
        return new Page(item.name, html.text(item.description).raw("</p>").toString());
    }

    private Page bidHistory(Item item) {
        Html html = html().raw("<h1>Bids for ").text(item.name).raw("</h1><p>");
        html.link("/items/" + item.id, "Back to the item").raw("</p>");
        if (item.made.isEmpty()) {
            html.raw("<p>Nobody has bid yet.</p>");
        } else {
            html.open("ul", "listing");
            for (Bid bid : latest(item.made, BIDS)) {
                html.raw("<li>").link("/users/" + bid.bidder().id, bid.bidder().name).raw(" ");
                html.open("span", "price").raw("$").number(bid.amount()).raw("</span> ");
                html.open("span", "note").text(day(bid.made())).raw("</span></li>");
            }
            html.raw("</ul>");
        }
        return new Page("Bids for " + item.name, html.toString());
    }

    private Page loginForItem(Item item, String action, String verb) {
        Html html = html().raw("<h1>Who ").raw(verb).raw(" ").text(item.name).raw("?</h1><p>");
        html.link("/items/" + item.id, "Back to the item").raw("</p>");
        String title = action.equals("bid") ? "Log in to bid" : "Log in to buy";
        return page(title, html, "/items/" + item.id + "/" + action, "Go on");
    }

    private Page commentForm(User user, Item item) {
        Html html = html().raw("<h1>Who comments on ").text(user.name).raw("?</h1><p>It is about ");
        html.link("/items/" + item.id, item.name).raw(".</p>");
        return page("Log in to comment", html, "/users/" + user.id + "/comment?item=" + item.id, "Go on");
    }

    private Page putComment(User user, Item item, String pass) {
        Html html = html().raw("<h1>How was it with ").link("/users/" + user.id, user.name);
        html.raw("?</h1><p>It is about ").link("/items/" + item.id, item.name);
        html.raw(".</p><form method=\"post\" action=\"/users/").raw(user.id + "/comments?item=" + item.id);
        html.raw("\">");
        hidden(html, "pass", pass).raw("<label>Rating<select name=\"rating\">")
                .raw("<option value=\"5\">Excellent</option><option value=\"3\">Good</option>")
                .raw("<option value=\"0\" selected=\"\">As it should be</option>")
                .raw("<option value=\"-3\">Not good</option><option value=\"-5\">Bad</option></select></label>")
                .raw("<label>Your words <textarea name=\"words\" rows=\"5\" maxlength=\"2000\" required=\"\">")
                .raw("</textarea></label><button>Say it</button></form>");
        return new Page("Your comment", html.toString());
    }

    private Page storeComment(User user, Item item, HttpServletRequest request) throws Refusal {
        User from = bearer(request);
        int rating = (int) whole(field(request, "rating"));
        user.comments.add(new Comment(from, item.name, rating, field(request, "words"), Tables.now()));
        user.rating += rating;
        Html html = html().raw("<h1>Thank you</h1><p>Everybody can read now what you think of ");
        html.link("/users/" + user.id, user.name).raw(".</p>");
        return new Page("Your comment", html.toString());
    }

    private Page registerForm() {
        Html html = html()
                .raw("<h1>Become a user</h1><form method=\"post\" action=\"/register\"><label>First name ")
                .raw("<input name=\"first\" autocomplete=\"given-name\" maxlength=\"40\" required=\"\" autofocus=\"\" />")
                .raw("</label><label>Last name ")
                .raw("<input name=\"last\" autocomplete=\"family-name\" maxlength=\"40\" required=\"\" /></label>")
                .raw("<label>Name in this house, from 3 letters on ")
                .raw("<input name=\"name\" autocomplete=\"username\" minlength=\"3\" maxlength=\"40\" required=\"\" />")
                .raw("</label><label>Password, from 8 letters on ")
                .raw("<input type=\"password\" name=\"password\" autocomplete=\"new-password\" ")
                .raw("minlength=\"8\" maxlength=\"100\" required=\"\" /></label><label>Region<select name=\"region\">");
        for (Place region : tables.regions) {
            html.raw("<option value=\"").text(region.slug()).raw("\">").text(region.name()).raw("</option>");
        }
        html.raw("</select></label><button>Register</button></form>");
        return new Page("Register", html.toString());
    }

    private Page registerUser(HttpServletRequest request) throws Refusal {
        User user = new User();
        user.first = field(request, "first");
        user.last = field(request, "last");
        user.name = field(request, "name");
        String password = field(request, "password");
        if (password.length() < 8 || password.length() > 100) {
            throw new Refusal(400, "password must have from 8 to 100 letters");
        }
        if (tables.usersByName.containsKey(user.name)) {
            throw new Refusal(409, "the name " + user.name + " is taken; please choose another");
        }
        user.region = region(field(request, "region"));
        user.salt = access.random(16);
        user.password = Tables.hashed(password, user.salt);
        user.since = Tables.now();
        tables.add(user);
        Html html = html().raw("<h1>Welcome, ").text(user.first).raw("</h1><p>You are ");
        html.link("/users/" + user.id, user.name).raw(" in this house. <a href=\"/browse\">Look around</a>");
        html.raw(", or <a href=\"/sell\">sell something</a>.</p>");
        return new Page("Welcome", html.toString());
    }

    private Html profile(Html html, User user) {
        html.raw("<dl><dt>Rating</dt><dd>").number(user.rating).raw("</dd><dt>Region</dt><dd>");
        html.text(user.region.name()).raw("</dd><dt>Since</dt><dd>").text(day(user.since)).raw("</dd></dl>");
        if (user.comments.isEmpty()) {
            return html.raw("<p>Nobody has said anything yet.</p>");
        }
        html.raw("<h2>What others say</h2>");
        for (Comment comment : latest(user.comments, ROWS)) {
            html.open("article", "said").link("/users/" + comment.from().id, comment.from().name).raw(" ");
            html.open("span", "note").raw(comment.rating() < 0 ? "" : "+").number(comment.rating());
            html.raw(", about ").text(comment.about()).raw(", on ").text(day(comment.made()));
            html.raw("</span><blockquote>").text(comment.words()).raw("</blockquote></article>");
        }
        return html;
    }

    private Page aboutMe(User user) {
        Html html = html().raw("<h1>About ").link("/users/" + user.id, user.name).raw("</h1>");
        profile(html, user);
        Lines lines = new Lines(html, suffix);
        for (Bid bid : latest(user.bids, ROWS)) {
            boolean isHighest = bid.item().highest == bid.amount();
            String state = isHighest ? "the highest" : "others have bid more";
            lines.item(bid.item(), bid.amount(), state);
        }
        lines.end("Your bids");
        for (Item item : latest(user.sales, ROWS)) {
            lines.item(item, item.price(), left(item.ends));
        }
        lines.end("What you sell");
        for (Purchase bought : latest(user.purchases, ROWS)) {
            String state = bought.quantity() + ", on " + day(bought.made());
            lines.item(bought.item(), bought.price(), state);
        }
        lines.end("What you bought at once");
        for (OldItem item : latest(user.won, ROWS)) {
            lines.add("/sold/" + item.id, item.name, item.price, day(item.ended));
        }
        lines.end("What you won");
        for (OldItem item : latest(user.sold, ROWS)) {
            lines.add("/sold/" + item.id, item.name, item.price, day(item.ended));
        }
        lines.end("What you have sold");
        for (Item item : latest(tables.newest, 5)) {
            lines.item(item, item.price(), left(item.ends));
        }
        lines.end("New in the house");
        return new Page("About me", html.toString());
    }

    /** A list of lines about items, which is written when it has ended and is not empty. */
    private static final class Lines {
        private final Html html;
        private final String suffix;
        private Html lines;

        Lines(Html html, String suffix) {
            this.html = html;
            this.suffix = suffix;
        }

        void item(Item item, long sum, String state) {
            add("/items/" + item.id, item.name, sum, state);
        }

        void add(String path, String name, long sum, String state) {
            if (lines == null) {
                lines = new Html(suffix);
            }
            lines.raw("<li>").link(path, name).raw(" ");
            lines.open("span", "price").raw("$").number(sum).raw("</span> ");
            lines.open("span", "note").text(state).raw("</span></li>");
        }

        void end(String title) {
            if (lines != null) {
                html.raw("<h2>").raw(title).raw("</h2>").open("ul", "listing");
                html.raw(lines.toString()).raw("</ul>");
                lines = null;
            }
        }
    }

    private Html amount(Html html, Item item, String pass, long tooLow) {
        html.raw("<h1>How much for ").text(item.name).raw("?</h1>");
        if (tooLow >= 0) {
            html.raw("<p role=\"alert\" class=\"warning").raw(suffix).raw("\">$").number(tooLow);
            html.raw(" is not enough any more: others have bid, too.</p>");
        }
        html.raw("<p>");
        if (item.bids == 0) {
            html.raw("Nobody has bid yet. ");
        } else {
            html.raw("The highest of ").link("/items/" + item.id + "/bids", bids(item.bids));
            html.raw(" is $").number(item.highest).raw(". ");
        }
        html.link("/items/" + item.id, "The item").raw(", by ");
        html.link("/users/" + item.seller.id, item.seller.name);
        html.raw(".</p><form method=\"post\" action=\"/items/").raw(item.id + "/bids\">");
        hidden(html, "pass", pass).raw("<label>Dollars <input type=\"number\" name=\"amount\" min=\"");
        html.number(item.leastBid()).raw("\" max=\"1000000000\" value=\"").number(item.leastBid());
        return html.raw("\" required=\"\" /></label><button>Bid</button></form>");
    }

    private Page storeBid(Item item, HttpServletRequest request) throws Refusal {
        User bidder = bearer(request);
        long amount = whole(field(request, "amount"));
        Html html = html();
        if (amount < item.leastBid()) {
            amount(html, item, access.pass(bidder.id), amount);
        } else {
            tables.add(new Bid(item, bidder, amount, Tables.now()));
            item.bids++;
            item.highest = amount;
            html.raw("<h1>Your bid counts</h1><p>$").number(amount).raw(" is the highest for ");
            html.link("/items/" + item.id, item.name).raw(" so far.</p>");
        }
        return new Page("Your bid", html.toString());
    }

    private Page buyNow(Item item, String pass) throws Refusal {
        long price = price(item);
        Html html = html().raw("<h1>Buy ").text(item.name).raw(" now</h1><p>$").number(price);
        html.raw(" each; ").number(item.quantity).raw(" of ").link("/items/" + item.id, "them");
        html.raw(" are left. Sold by ").link("/users/" + item.seller.id, item.seller.name);
        html.raw(".</p><form method=\"post\" action=\"/items/").raw(item.id + "/purchases\">");
        hidden(html, "pass", pass).raw("<label>How many ");
        html.raw("<input type=\"number\" name=\"quantity\" min=\"1\" max=\"");
        html.number(Math.min(item.quantity, 10_000)).raw("\" value=\"1\" required=\"\" /></label>");
        return new Page("Buy now", html.raw("<button>Buy</button></form>").toString());
    }

    private Page storePurchase(Item item, HttpServletRequest request) throws Refusal {
        User buyer = bearer(request);
        long quantity = whole(field(request, "quantity"));
        long price = price(item);
        if (quantity < 1 || quantity > item.quantity) {
            throw new Refusal(400, "quantity must be " + item.quantity + " at most");
        }
        item.quantity -= quantity;
        buyer.purchases.add(new Purchase(item, quantity, price, Tables.now()));
        Html html = html().raw("<h1>It is yours</h1><p>").number(quantity).raw(" of ");
        html.link("/items/" + item.id, item.name).raw(" for $").number(price).raw(" each.</p>");
        return new Page("Bought", html.toString());
    }

    private Page selectCategory(User user) {
        Html html = html().raw("<h1>What is it?</h1><form method=\"post\" action=\"/sell/form\" class=\"choices");
        hidden(html.raw(suffix).raw("\">"), "pass", access.pass(user.id));
        for (Place category : tables.categories) {
            html.raw("<button name=\"category\" value=\"").text(category.slug()).raw("\">");
            html.text(category.name()).raw("</button>");
        }
        return new Page("Choose a category", html.raw("</form>").toString());
    }

    private Page sellForm(HttpServletRequest request) throws Refusal {
        User seller = bearer(request);
        Place category = chosen(request);
        Html html = html().raw("<h1>Sell in ").text(category.name()).raw("</h1><form method=\"post\" action=\"/items\">");
        hidden(html, "pass", access.pass(seller.id));
        hidden(html, "category", category.slug())
                .raw("<label>What it is <input name=\"name\" maxlength=\"100\" required=\"\" autofocus=\"\" /></label>")
                .raw("<label>Description <textarea name=\"description\" rows=\"6\" maxlength=\"8000\" required=\"\">")
                .raw("</textarea></label><label>First price, in dollars ")
                .raw("<input type=\"number\" name=\"price\" min=\"1\" max=\"1000000\" required=\"\" /></label>")
                .raw("<label>Not to be sold below ")
                .raw("<input type=\"number\" name=\"reserve\" min=\"1\" max=\"1000000\" /></label>")
                .raw("<label>To be sold at once for ")
                .raw("<input type=\"number\" name=\"buy_now\" min=\"1\" max=\"1000000\" /></label><label>How many ")
                .raw("<input type=\"number\" name=\"quantity\" min=\"1\" max=\"10000\" value=\"1\" required=\"\" /></label>")
                .raw("<label>For how many days ")
                .raw("<input type=\"number\" name=\"days\" min=\"1\" max=\"7\" value=\"7\" required=\"\" /></label>")
                .raw("<button>Offer it</button></form>");
        return new Page("Sell", html.toString());
    }

    private Page registerItem(HttpServletRequest request) throws Refusal {
        Item item = new Item();
        item.seller = bearer(request);
        item.category = chosen(request);
        item.name = field(request, "name");
        item.description = field(request, "description");
        item.firstPrice = whole(field(request, "price"));
        item.reserve = perhaps(field(request, "reserve"));
        item.buyNow = perhaps(field(request, "buy_now"));
        item.quantity = whole(field(request, "quantity"));
        long days = whole(field(request, "days"));
        if (days < 1 || days > 7 || item.quantity < 1 || item.quantity > 10_000) {
            throw new Refusal(400, "days must be from 1 to 7, and quantity from 1 to 10000");
        }
        item.begins = Tables.now();
        item.ends = item.begins + days * Tables.DAY;
        tables.add(item);
        Html html = html().raw("<h1>It is for sale</h1><p>").link("/items/" + item.id, item.name);
        return new Page("For sale", html.raw(" can be bid for.</p>").toString());
    }

    private Page page(String title, Html html, String to, String button) {
        html.raw("<form method=\"post\" action=\"").text(to).raw("\">")
                .raw("<label>Name <input name=\"name\" autocomplete=\"username\" required=\"\" autofocus=\"\" /></label>")
                .raw("<label>Password <input type=\"password\" name=\"password\" ")
                .raw("autocomplete=\"current-password\" required=\"\" /></label><button>")
                .text(button)
                .raw("</button></form>");
        return new Page(title, html.toString());
    }

    private static Html hidden(Html html, String name, String value) {
        html.raw("<input type=\"hidden\" name=\"").raw(name).raw("\" value=\"").text(value);
        return html.raw("\" />");
    }

    private Html html() {
        return new Html(suffix);
    }

    private User logIn(HttpServletRequest request) throws Refusal {
        User user = tables.usersByName.get(field(request, "name"));
        if (user == null || !Access.isRight(field(request, "password"), user)) {
            throw new Refusal(403, "there is no user of this name with this password; please try again");
        }
        return user;
    }

    private User bearer(HttpServletRequest request) throws Refusal {
        UUID id = access.bearer(field(request, "pass"));
        if (id == null) {
            throw new Refusal(403, "this form has been open for too long; please go back and log in again");
        }
        return found(tables.users.get(id), "user");
    }

    /** The category in a form. */
    private Place chosen(HttpServletRequest request) throws Refusal {
        Place category = Tables.placeOf(tables.categories, field(request, "category"));
        if (category == null) {
            throw new Refusal(400, "category is none of ours");
        }
        return category;
    }

    private Place category(String slug) throws Refusal {
        return found(Tables.placeOf(tables.categories, slug), "category");
    }

    private Place region(String slug) throws Refusal {
        return found(Tables.placeOf(tables.regions, slug), "region");
    }

    private Item item(String id) throws Refusal {
        return found(tables.items.get(Auction.id(id)), "item");
    }

    private User user(String id) throws Refusal {
        return found(tables.users.get(Auction.id(id)), "user");
    }

    /** The item, if it is still for sale. */
    private Item open(String id) throws Refusal {
        Item item = item(id);
        if (!item.isOpen()) {
            String why = item.quantity == 0 ? "it was sold" : "its time is over";
            throw new Refusal(409, "this auction has ended: " + why);
        }
        return item;
    }

    private static long price(Item item) throws Refusal {
        if (item.buyNow == null) {
            throw new Refusal(409, "this is not for sale at once; please bid for it");
        }
        return item.buyNow;
    }

    private static <T> T found(T row, String what) throws Refusal {
        if (row == null) {
            throw new Refusal(404, "there is no such " + what);
        }
        return row;
    }

    private static String field(HttpServletRequest request, String name) throws Refusal {
        String value = request.getParameter(name);
        if (value == null) {
            throw new Refusal(400, name + " is missing");
        }
        return value;
    }

    private static long whole(String text) throws Refusal {
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException error) {
            throw new Refusal(400, text + " is no number");
        }
    }

    private static Long perhaps(String text) throws Refusal {
        return text.isEmpty() ? null : Long.valueOf(whole(text));
    }

    /** The last rows, the newest first. */
    private static <T> List<T> latest(List<T> rows, int most) {
        List<T> last = new ArrayList<>(rows.subList(Math.max(0, rows.size() - most), rows.size()));
        Collections.reverse(last);
        return last;
    }

    private static String bids(long count) {
        return count + (count == 1 ? " bid" : " bids");
    }

    private static String left(long ends) {
        long minutes = (ends - Tables.now()) / 60_000_000;
        long days = minutes / (24 * 60);
        long hours = minutes / 60 % 24;
        if (minutes < 0) {
            return "ended";
        }
        if (days > 0) {
            return days + " d " + hours + " h left";
        }
        return hours > 0 ? hours + " h left" : minutes % 60 + " min left";
    }

    private static String day(long moment) {
        return LocalDate.ofEpochDay(Math.floorDiv(moment, Tables.DAY)).toString();
    }
}
