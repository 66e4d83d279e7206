package auction;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The rows of the auction in memory, with the indexes of the example {@code auction}, and their
 * generation from a seed: the same rows as those of {@code examples/auction/seed.rs}, except for ids.
 * Callers hold a lock.
 */
final class Tables {
    /** Times are microseconds since 1970, as in the example. */
    static final long SECOND = 1_000_000;
    static final long DAY = 24 * 3600 * SECOND;

    private static final double USERS = 1_000_000;
    private static final double OLD_ITEMS = 500_000;
    private static final int AT_ONCE = 500;

    record Place(String slug, String name) {}

    static final class User {
        final UUID id = newId();
        final List<Bid> bids = new ArrayList<>(0);
        final List<Item> sales = new ArrayList<>(0);
        final List<Purchase> purchases = new ArrayList<>(0);
        final List<OldItem> won = new ArrayList<>(0);
        final List<OldItem> sold = new ArrayList<>(0);
        final List<Comment> comments = new ArrayList<>(0);
        String name;
        byte[] salt;
        byte[] password;
        String first;
        String last;
        Place region;
        long rating;
        long since;
    }

    static final class Item {
        final UUID id = newId();
        final List<Bid> made = new ArrayList<>(0);
        /** The order of insertion. */
        long number;
        String name;
        String description;
        Place category;
        User seller;
        long quantity;
        long firstPrice;
        Long reserve;
        Long buyNow;
        long bids;
        long highest;
        long begins;
        long ends;

        boolean isOpen() {
            return quantity > 0 && ends > now();
        }

        long price() {
            return Math.max(highest, firstPrice);
        }

        long leastBid() {
            return bids == 0 ? firstPrice : highest + 1;
        }
    }

    static final class OldItem {
        final UUID id = newId();
        String name;
        String description;
        User seller;
        User buyer;
        long price;
        long bids;
        long ended;
    }

    record Bid(Item item, User bidder, long amount, long made) {}

    record Purchase(Item item, long quantity, long price, long made) {}

    record Comment(User from, String about, int rating, String words, long made) {}

    private static final Comparator<Item> BY_END =
            Comparator.<Item>comparingLong(item -> item.ends).thenComparingLong(item -> item.number);

    final List<Place> regions = new ArrayList<>();
    final List<Place> categories = new ArrayList<>();
    final List<Item> newest = new ArrayList<>();
    final Map<UUID, User> users = new HashMap<>();
    final Map<UUID, Item> items = new HashMap<>();
    final Map<UUID, OldItem> oldItems = new HashMap<>();
    final Map<String, User> usersByName = new HashMap<>();
    private final Map<Place, TreeSet<Item>> byCategory = new HashMap<>();
    private final Map<Place, Map<Place, TreeSet<Item>>> byRegion = new HashMap<>();

    static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * SECOND + now.getNano() / 1000;
    }

    /** The items of a category, or of a category of a region, sorted by end. */
    Iterable<Item> search(Place region, Place category) {
        var own = region == null ? byCategory : byRegion.getOrDefault(region, Map.of());
        TreeSet<Item> found = own.get(category);
        return found == null ? List.of() : found;
    }

    void add(User user) {
        users.put(user.id, user);
        usersByName.put(user.name, user);
    }

    void add(Item item) {
        item.number = newest.size();
        newest.add(item);
        items.put(item.id, item);
        item.seller.sales.add(item);
        var region = byRegion.computeIfAbsent(item.seller.region, none -> new HashMap<>());
        for (var index : List.of(byCategory, region)) {
            index.computeIfAbsent(item.category, none -> new TreeSet<>(BY_END)).add(item);
        }
    }

    void add(Bid bid) {
        bid.item.made.add(bid);
        bid.bidder.bids.add(bid);
    }

    static Place placeOf(List<Place> places, String slug) {
        return places.stream().filter(place -> place.slug.equals(slug)).findFirst().orElse(null);
    }

    static byte[] hashed(String password, byte[] salt) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(salt, "HmacSHA256"));
            return mac.doFinal(password.getBytes(StandardCharsets.UTF_8));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("every Java platform has HmacSHA256", error);
        }
    }

    /** A UUID of version 7, as long as an id of the example. */
    private static UUID newId() {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        long high = System.currentTimeMillis() << 16 | 0x7000 | random.nextInt(0x1000);
        return new UUID(high, random.nextLong() & 0x3fff_ffff_ffff_ffffL | 0x8000_0000_0000_0000L);
    }

    /** Generates all rows. {@code words} is the file of words of the example. */
    static Tables generated(Path words, double scale, long seed) throws IOException {
        Tables tables = new Tables();
        new Seeding(tables, new Words(words), scale, seed).fill();
        return tables;
    }

    /** The lists of the file {@code words.rs}. */
    private static final class Words {
        private static final Pattern TOKEN = Pattern.compile("\"([^\"]*)\"|(-?\\d+)");
        private static final Pattern LIST = Pattern.compile("&\\[([^\\[\\]]*)\\]");
        private final String text;

        Words(Path file) throws IOException {
            text = Files.readString(file);
        }

        /** The literals of a constant: texts and numbers. */
        List<String> of(String name) {
            return tokens(body(name));
        }

        /** The inner lists of a constant, in order. */
        List<List<String>> lists(String name) {
            List<List<String>> lists = new ArrayList<>();
            Matcher list = LIST.matcher(body(name));
            while (list.find()) {
                lists.add(tokens(list.group(1)));
            }
            return lists;
        }

        private String body(String name) {
            int start = text.indexOf("const " + name + ":");
            int from = text.indexOf("= &[", start);
            int to = text.indexOf("];", from);
            if (start < 0 || from < 0 || to < 0) {
                throw new IllegalStateException("the file of words has no list " + name);
            }
            return text.substring(from + "= &[".length(), to);
        }

        private static List<String> tokens(String body) {
            List<String> tokens = new ArrayList<>();
            Matcher token = TOKEN.matcher(body);
            while (token.find()) {
                tokens.add(token.group(1) != null ? token.group(1) : token.group(2));
            }
            return tokens;
        }
    }

    /** Draws in the order of the example, so that the rows are equal. */
    private static final class Seeding {
        private final Tables tables;
        private final double scale;
        private final long now = now();
        private final List<User> users = new ArrayList<>();
        private final List<String> counts;
        private final List<List<String>> kinds;
        private final List<String> first;
        private final List<String> last;
        private final List<String> praise;
        private final List<String> sentences;
        private long state;

        Seeding(Tables tables, Words words, double scale, long seed) {
            this.tables = tables;
            this.scale = scale;
            state = seed;
            counts = words.of("CATEGORIES");
            kinds = words.lists("KINDS");
            first = words.of("FIRST");
            last = words.of("LAST");
            praise = words.of("PRAISE");
            sentences = words.of("SENTENCES");
            for (String name : words.of("REGIONS")) {
                tables.regions.add(new Place(slug(name), name));
            }
            for (int at = 0; at < counts.size(); at += 2) {
                tables.categories.add(new Place(slug(counts.get(at)), counts.get(at)));
            }
        }

        void fill() {
            int wanted = count(USERS);
            for (int number = 0; number < wanted; number++) {
                users.add(user(number));
                tables.add(users.get(number));
            }
            for (int category = 0; category < tables.categories.size(); category++) {
                int left = count(Double.parseDouble(counts.get(2 * category + 1)));
                while (left > 0) {
                    int count = Math.min(left, AT_ONCE);
                    items(category, count);
                    left -= count;
                }
            }
            int old = count(OLD_ITEMS);
            for (int number = 0; number < old; number++) {
                oldItem();
            }
        }

        private User user(int number) {
            User user = new User();
            user.name = "user" + number;
            long bits = bits();
            user.salt = new byte[8];
            for (int at = 0; at < 8; at++) {
                user.salt[at] = (byte) (bits >>> (8 * at));
            }
            user.password = hashed("password" + number, user.salt);
            user.first = of(first);
            user.last = of(last);
            user.region = of(tables.regions);
            user.since = now - between(1, 1000) * DAY;
            return user;
        }

        private void items(int category, int count) {
            List<Item> items = new ArrayList<>();
            for (int number = 0; number < count; number++) {
                items.add(item(category));
            }
            for (Item item : items) {
                tables.add(item);
                item.highest = item.firstPrice - 1;
                for (long number = 0; number < item.bids; number++) {
                    item.highest += between(1, 10);
                    long made = item.begins + (now - item.begins) / 20 * number;
                    tables.add(new Bid(item, of(users), item.highest, made));
                }
                if (item.bids == 0) {
                    item.highest = 0;
                }
            }
        }

        private Item item(int category) {
            Item item = new Item();
            item.seller = of(users);
            item.firstPrice = between(1, 5000);
            boolean isStock = below(10) == 0;
            boolean isSeveral = below(5) == 0;
            boolean hasReserve = below(5) < 2;
            item.name = name(category);
            item.description = description();
            item.category = tables.categories.get(category);
            item.quantity = isStock ? 100_000 : isSeveral ? between(2, 10) : 1;
            item.reserve = hasReserve ? Long.valueOf(item.firstPrice + between(1, 1000)) : null;
            item.buyNow = isStock ? Long.valueOf(item.firstPrice + between(100, 1000)) : null;
            item.bids = between(0, 19);
            item.begins = now - between(0, DAY / SECOND) * SECOND;
            item.ends = now + between(DAY / SECOND, 7 * DAY / SECOND) * SECOND;
            return item;
        }

        private void oldItem() {
            OldItem item = new OldItem();
            int category = below(tables.categories.size());
            item.seller = of(users);
            User buyer = of(users);
            item.bids = between(0, 19);
            item.name = name(category);
            item.description = description();
            item.buyer = item.bids > 0 ? buyer : null;
            item.price = between(1, 5000) + item.bids * 5;
            item.ended = now - between(1, 300) * DAY;
            int mood = below(praise.size() / 2);
            int rating = Integer.parseInt(praise.get(2 * mood));
            String words = text(praise.get(2 * mood + 1), below(2000));
            tables.oldItems.put(item.id, item);
            item.seller.sold.add(item);
            if (item.buyer != null) {
                item.buyer.won.add(item);
            }
            item.seller.comments.add(new Comment(buyer, item.name, rating, words, item.ended + DAY));
            item.seller.rating += rating;
        }

        private String name(int category) {
            String kind = of(kinds.get(2 * category));
            String thing = of(kinds.get(2 * category + 1));
            return kind + " " + thing + ", lot " + below(10_000);
        }

        private String description() {
            return text("For sale from a house that is cleared.", below(7_500));
        }

        private String text(String begin, int length) {
            StringBuilder text = new StringBuilder(begin);
            while (true) {
                String next = of(sentences);
                if (text.length() + next.length() >= length) {
                    return text.toString();
                }
                text.append(' ').append(next);
            }
        }

        private int count(double ofAll) {
            return (int) Math.max(1, Math.ceil(ofAll * scale));
        }

        private long bits() {
            state += 0x9e37_79b9_7f4a_7c15L;
            long bits = state;
            bits = (bits ^ bits >>> 30) * 0xbf58_476d_1ce4_e5b9L;
            bits = (bits ^ bits >>> 27) * 0x94d0_49bb_1331_11ebL;
            return bits ^ bits >>> 31;
        }

        private int below(int bound) {
            return (int) Long.remainderUnsigned(bits(), bound);
        }

        private long between(long least, long most) {
            return least + Long.remainderUnsigned(bits(), most - least + 1);
        }

        private <T> T of(List<T> several) {
            return several.get(below(several.size()));
        }

        private static String slug(String name) {
            String dashed = name.toLowerCase(java.util.Locale.ROOT).replaceAll("[^a-z0-9]+", "-");
            return dashed.replaceAll("^-|-$", "");
        }
    }
}
