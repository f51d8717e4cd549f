import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.locks.StandardLockInternalsDriver;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.KeeperException;

/**
 * The real Apache Curator, driven line by line: reads {@code <hand> <verb> <arguments>} and answers
 * {@code <hand> <what came of it>}. Its locks belong to threads, so every hand is one. Ends with its input.
 */
public final class CuratorPeer {
    private static final String REVOCABLE = "revocable";
    private static final long PATIENCE_S = 60;

    private final CuratorFramework client;
    private final Map<String, Hand> hands = new HashMap<>();

    private CuratorPeer(CuratorFramework client) {
        this.client = client;
    }

    public static void main(String[] arguments) throws Exception {
        var client = CuratorFrameworkFactory.newClient(arguments[0], 6_000, 6_000, new RetryOneTime(100));
        client.start();
        if (!client.blockUntilConnected(20, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + arguments[0]);
        }
        say("ready " + (downgradeKeepsPlace() ? "downgrade-keeps-place" : "downgrade-loses-place"));
        var peer = new CuratorPeer(client);
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            peer.hands.computeIfAbsent(words[0], name -> peer.new Hand(name)).tell(words);
        }
        Runtime.getRuntime().halt(0);
    }

    /** Curator 5.5 has it (CURATOR-621), 5.4 has not. */
    private static boolean downgradeKeepsPlace() {
        for (var method : StandardLockInternalsDriver.class.getDeclaredMethods()) {
            if (method.getName().equals("getSortingSequence")) {
                return true;
            }
        }
        return false;
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private final class Hand {
        private final String name;
        private final ExecutorService thread = Executors.newSingleThreadExecutor();
        private final Map<String, InterProcessReadWriteLock> pairs = new HashMap<>();
        private final Map<String, InterProcessLock> locks = new HashMap<>();
        private final Map<String, Lease> leases = new HashMap<>();
        private final CountDownLatch revoked = new CountDownLatch(1);

        Hand(String name) {
            this.name = name;
        }

        void tell(String[] words) {
            thread.execute(() -> {
                String answer;
                try {
                    answer = obey(words);
                } catch (Exception error) {
                    answer = "error " + error;
                }
                say(name + " " + answer);
            });
        }

        private String obey(String[] words) throws Exception {
            switch (words[1]) {
                case "acquire":
                    return acquire(words[2], words[3], Long.parseLong(words[4]));
                case "release":
                    release(words[2], words[3]);
                    return "released";
                case "token":
                    String node = ((Fenced) lock(words[2], words[3])).node();
                    return Long.toString(client.checkExists().forPath(node).getCzxid());
                case "contend":
                    return contend(words[2], words[3], Integer.parseInt(words[4]), words[5]);
                case "revoke":
                    Revoker.attemptRevoke(client, words[2]);
                    return "asked";
                case "revoked":
                    return revoked.await(PATIENCE_S, TimeUnit.SECONDS) ? "revoked" : "timeout";
                case "limit":
                    try (var limit = new SharedCount(client, words[2] + "/limit", 0)) {
                        limit.start();
                        limit.setCount(Integer.parseInt(words[3]));
                    }
                    return "set";
                default:
                    return "error unknown verb " + words[1];
            }
        }

        private String acquire(String kind, String path, long wait_ms) throws Exception {
            if (kind.startsWith("permit")) {
                Lease lease = semaphore(kind, path).acquire(wait_ms, TimeUnit.MILLISECONDS);
                leases.put(path, lease);
                return lease == null ? "timeout" : "held";
            }
            return lock(kind, path).acquire(wait_ms, TimeUnit.MILLISECONDS) ? "held" : "timeout";
        }

        private void release(String kind, String path) throws Exception {
            if (kind.startsWith("permit")) {
                leases.remove(path).close();
            } else {
                lock(kind, path).release();
            }
        }

        private InterProcessLock lock(String kind, String path) {
            return locks.computeIfAbsent(kind + path, key -> {
                var pair = pairs.computeIfAbsent(path, at -> new InterProcessReadWriteLock(client, at));
                switch (kind) {
                    case "read":
                        return pair.readLock();
                    case "write":
                        return pair.writeLock();
                    case "semaphore-mutex":
                        return new InterProcessSemaphoreMutex(client, path);
                    default:
                        var mutex = new Fenced(client, path);
                        if (kind.equals(REVOCABLE)) {
                            mutex.makeRevocable(asked -> revoked.countDown());
                        }
                        return mutex;
                }
            });
        }

        /** {@code permit-<limit>}, or {@code permit-shared} for the limit that stands in the semaphore's directory. */
        private InterProcessSemaphoreV2 semaphore(String kind, String path) throws Exception {
            String limit = kind.substring("permit-".length());
            if (!limit.equals("shared")) {
                return new InterProcessSemaphoreV2(client, path, Integer.parseInt(limit));
            }
            var shared = new SharedCount(client, path + "/limit", 0);
            shared.start();
            return new InterProcessSemaphoreV2(client, path, shared);
        }

        private String contend(String kind, String path, int turns, String room) throws Exception {
            for (int turn = 0; turn < turns; turn++) {
                if (!acquire(kind, path, TimeUnit.SECONDS.toMillis(PATIENCE_S)).equals("held")) {
                    return "timeout in turn " + turn;
                }
                try {
                    visit(kind, room);
                } catch (Violation | KeeperException.NodeExistsException seen) {
                    return "violation " + seen;
                } finally {
                    release(kind, path);
                }
            }
            return "done";
        }

        /** The same rules as in {@code witness.rs}. */
        private void visit(String kind, String room) throws Exception {
            String own = kind.equals("read") || kind.startsWith("permit") ? kind + "-" + name : "alone";
            client.create().forPath(room + "/" + own);
            look(kind, room);
            Thread.sleep(2);
            look(kind, room);
            client.delete().forPath(room + "/" + own);
        }

        private void look(String kind, String room) throws Exception {
            List<String> inside = client.getChildren().forPath(room);
            boolean fine = kind.equals("read") ? !inside.contains("alone")
                    : kind.startsWith("permit") ? inside.size() <= Integer.parseInt(kind.substring(7))
                    : inside.size() == 1;
            if (!fine) {
                throw new Violation(kind + " found " + inside);
            }
        }
    }

    /** What docs/migration.md tells users to write: a mutex that tells its node, whose czxid is the token. */
    private static final class Fenced extends InterProcessMutex {
        Fenced(CuratorFramework client, String path) {
            super(client, path);
        }

        String node() {
            return getLockPath();
        }
    }

    private static final class Violation extends Exception {
        Violation(String what) {
            super(what);
        }
    }
}
