package auction;

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.UUID;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * The example {@code auction} as a servlet: the same pages, with the same work in place of a database.
 * Requests wait and hash outside of the lock.
 */
public final class Auction extends HttpServlet {
    private static final long serialVersionUID = 1;
    private static final byte[] HASHED = new byte[1024];

    static {
        java.util.Arrays.fill(HASHED, (byte) 0x5a);
    }

    private final transient ReadWriteLock lock = new ReentrantReadWriteLock();
    private final transient Access access = new Access();
    private final long delay = Long.getLong("auction.delay", 0);
    private final int hashes = Integer.getInteger("auction.hashes", 0);
    private final String suffix = System.getProperty("auction.suffix", "");
    private final String sheet = System.getProperty("auction.sheet", "");
    private transient Pages pages;
    private transient byte[] logo;
    private transient byte[] bid;

    /** A response that is not the page. */
    static final class Refusal extends Exception {
        private static final long serialVersionUID = 1;
        final int status;

        Refusal(int status, String reason) {
            super(reason);
            this.status = status;
        }
    }

    /** The title and the content of a page. */
    record Page(String title, String content) {}

    @Override
    public void init() throws ServletException {
        Path source = Path.of(System.getProperty("auction.source"));
        double scale = Double.parseDouble(System.getProperty("auction.scale", "0.01"));
        long seed = Long.getLong("auction.seed", 1);
        try {
            Tables tables = Tables.generated(source.resolve("seed/words.rs"), scale, seed);
            pages = new Pages(tables, access, suffix);
            logo = Files.readAllBytes(source.resolve("images/logo.svg"));
            bid = Files.readAllBytes(source.resolve("images/bid.svg"));
        } catch (IOException error) {
            throw new ServletException("auction.source must be the folder examples/auction", error);
        }
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String path = request.getServletPath();
        switch (path) {
            case "/logo.svg" -> send(response, 200, "image/svg+xml", logo);
            case "/bid.svg" -> send(response, 200, "image/svg+xml", bid);
            default -> page(request, response, lock.readLock());
        }
    }

    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
        request.setCharacterEncoding("UTF-8");
        page(request, response, Pages.writes(request.getServletPath()) ? lock.writeLock() : lock.readLock());
    }

    private void page(HttpServletRequest request, HttpServletResponse response, Lock lock) throws IOException {
        String[] parts = request.getServletPath().split("/");
        boolean isForm = request.getMethod().equals("POST");
        for (int accesses = Pages.accesses(parts, isForm); accesses > 0; accesses--) {
            pause();
        }
        int status = 200;
        Page page;
        lock.lock();
        try {
            page = isForm ? pages.post(parts, request) : pages.get(parts, request);
        } catch (Refusal refusal) {
            status = refusal.status;
            Html html = new Html(suffix).raw("<h1>").text(refusal.getMessage()).raw("</h1>");
            page = new Page(refusal.getMessage(), html.toString());
        } finally {
            lock.unlock();
        }
        byte[] body = layout(page).getBytes(StandardCharsets.UTF_8);
        send(response, status, "text/html; charset=utf-8", body);
    }

    private String layout(Page page) {
        return new Html(suffix)
                .raw("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\" />")
                .raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" /><title>")
                .text(page.title)
                .raw("</title>")
                .raw(sheet)
                .raw("</head><body><header><a href=\"/\">")
                .raw("<img src=\"/logo.svg\" alt=\"The Hopyard\" width=\"220\" height=\"48\" /></a>")
                .raw("<nav><a href=\"/browse\">Browse</a> <a href=\"/sell\">Sell</a> ")
                .raw("<a href=\"/me\">About me</a> <a href=\"/register\">Register</a></nav></header><main>")
                .raw(page.content)
                .raw("</main></body></html>")
                .toString();
    }

    private static void send(HttpServletResponse response, int status, String type, byte[] body)
            throws IOException {
        response.setStatus(status);
        response.setContentType(type);
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }

    /** Blocks and computes, like a query to a remote database. */
    private void pause() {
        try {
            if (delay > 0) {
                Thread.sleep(delay);
            }
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            for (int number = 0; number < hashes; number++) {
                digest.digest(HASHED);
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException("every Java platform has SHA-256", error);
        }
    }

    /** The id in an address or a form. */
    static UUID id(String text) throws Refusal {
        try {
            return UUID.fromString(text);
        } catch (IllegalArgumentException error) {
            throw new Refusal(404, "is no address of this house");
        }
    }
}
