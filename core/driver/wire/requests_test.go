package wire

import "testing"

func TestSecretsTellAccountsApart(t *testing.T) {
	a, b := machine("a"), machine("b")
	if a.Account() != b.Account() {
		t.Error("one spec makes two accounts")
	}
	b.Secrets = map[string][]byte{"k": []byte("v")}
	if a.Account() == b.Account() {
		t.Error("other secrets make the same account")
	}
}
